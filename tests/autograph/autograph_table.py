# ruff: noqa: B007, SIM102, SIM201 (written the way the converter is to be tried)
"""Small functions whose converted form must give what plain Python gives on the same numbers.

Pure Python: the table can be run with TensorFlow's own AutoGraph as well. ``CASES`` has (function,
argument tuples).
"""

CASES = []


def case(*calls):
    def add(function):
        CASES.append((function, calls))
        return function

    return add


# branches


@case((3,), (-3,), (0,))
def absolute(x):
    if x < 0:
        x = -x
    return x


@case((3,), (-3,))
def both_branches(x):
    if x > 0:
        y = x * 2
        z = 1
    else:
        y = x - 5
        z = 2
    return y + z


@case((3,), (-3,), (0,))
def elif_chain(x):
    if x > 0:
        s = 1
    elif x == 0:
        s = 0
    else:
        s = -1
    return s


@case((3,), (-3,), (0,), (12,))
def elif_returns(x):
    if x > 10:
        return 100
    elif x > 0:
        return 10
    elif x == 0:
        return 0
    return x


@case((3, 4), (4, 3), (-1, 5), (-1, -5))
def nested_if(x, y):
    r = 0
    if x > 0:
        if y > x:
            r = y
        else:
            r = x
    elif y > 0:
        r = -y
    return r


@case((3,), (-3,))
def temporary_in_branch(x):
    if x > 0:
        t = x * 3
        y = t + 1
    else:
        y = x
    return y


@case((1,), (-1,))
def early_return(x):
    if x > 0:
        return x
    x = x * 2
    return x


@case((1, 1), (1, -1), (-1, 1))
def return_in_nested_branch(x, y):
    if x > 0:
        if y > 0:
            return 1
    return 2


@case((1, 1), (1, -1), (-1, 1))
def return_in_else_only(x, y):
    if x > 0:
        x = x + y
    else:
        if y > 0:
            return 7
        x = x - 1
    return x * 10


@case((1,), (5,))
def multiple_values(x):
    if x > 2:
        a, b = x, x + 1
    else:
        b, a = x, x + 1
    return a * 10 + b


@case((1,), (5,))
def structure_in_branch(x):
    if x > 2:
        p = (x, {"k": x + 1})
    else:
        p = (0, {"k": -x})
    return p[0] + p[1]["k"]


@case((1,), (5,))
def ternary(x):
    return x if x > 2 else -x


@case((1,), (5,), (9,))
def nested_ternary(x):
    return x if x > 7 else (10 * x if x > 2 else -x)


@case((True, 2), (False, 2))
def bool_argument(c, x):
    if c:
        return x
    return -x


# boolean operators


@case((1,), (5,), (9,))
def logical_and(x):
    return x > 2 and x < 8


@case((1,), (5,), (9,))
def logical_or(x):
    return x < 2 or x > 8


@case((1,), (5,))
def logical_not(x):
    return not x > 2


@case((1,), (5,), (9,))
def three_operands(x):
    return x > 0 and x < 8 and not x == 5


@case((1,), (5,), (9,))
def chained(x):
    return 2 < x < 8


@case((1,), (5,), (9,))
def chained_three(x):
    return 0 < x <= 5 != 6


@case((1,), (5,))
def mixed_python_and(x):
    flag = True
    if flag and x > 2:
        return 1
    return 0


@case((1, 1), (1, 2))
def equality(x, y):
    if x == y:
        return 1
    return 2


@case((1, 1), (1, 2))
def inequality(x, y):
    return x != y


# while


@case((0,), (1,), (7,))
def countdown(n):
    s = 0
    while n > 0:
        s += n
        n -= 1
    return s


@case((27,), (1,), (6,))
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@case((0,), (5,), (30,))
def while_break(n):
    i = 0
    while i < n:
        if i * i > 50:
            break
        i += 1
    return i


@case((0,), (5,), (10,))
def while_continue(n):
    i = 0
    s = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        s += i
    return s


@case((5, 4), (1, 1), (0, 3))
def nested_while(n, m):
    total = 0
    i = 0
    while i < n:
        j = 0
        while j < m:
            if j > i:
                break
            total += i * j
            j += 1
        i += 1
    return total


@case((10, 3), (10, 100))
def while_return(n, k):
    i = 0
    while i < n:
        if i == k:
            return i * 100
        i += 1
    return -1


@case((5,), (0,))
def while_else(n):
    i = 0
    while i < n:
        if i == 3:
            break
        i += 1
    else:
        i = 50
    return i


@case((3,), (8,))
def while_condition_and(n):
    i = 0
    while i < n and i * i < 30:
        i += 1
    return i


@case(
    (5,),
)
def python_while(x):
    i = 0
    while i < 3:
        x = x * 2
        i += 1
    return x


@case((48, 18), (7, 3))
def gcd(a, b):
    while b > 0:
        a, b = b, a % b
    return a


@case((10.0,), (2.0,))
def newton(x):
    g = x
    while abs(g * g - x) > 0.001:
        g = (g + x / g) / 2.0
    return g


# for


@case((0,), (5,))
def for_range(n):
    s = 0
    for i in range(n):
        s += i
    return s


@case((2, 9), (9, 2))
def for_range_two(a, b):
    s = 0
    for i in range(a, b):
        s += i
    return s


@case(
    (9, 0),
)
def for_range_step(a, b):
    s = 0
    for i in range(a, b, -2):
        s = s * 10 + i
    return s


@case(([1, 2, 3],), ([5],))
def for_tensor(xs):
    s = 0
    for x in xs:
        s += x * x
    return s


@case(([[1, 2], [3, 4], [5, 6]],))
def for_rows(rows):
    s = 0
    for row in rows:
        s += row[0] * row[1]
    return s


@case(([1, -2, 3, -4],))
def for_if(xs):
    pos = 0
    neg = 0
    for x in xs:
        if x > 0:
            pos += x
        else:
            neg += x
    return pos * 100 + neg


@case(([1, 2, 3, 4],), ([9, 9],))
def for_break(xs):
    s = 0
    for x in xs:
        if x > 2:
            break
        s += x
    return s


@case(([1, 2, 3, 4],))
def for_continue(xs):
    s = 0
    for x in xs:
        if x == 2:
            continue
        s += x
    return s


@case(([1, 2, 3, 4], 3), ([1, 2, 3, 4], 7))
def for_return(xs, k):
    for x in xs:
        if x == k:
            return x * 10
    return -1


@case(([1, 2, 3, 4], 3), ([1, 2, 3, 4], 7))
def for_else(xs, k):
    r = 0
    for x in xs:
        if x == k:
            r = 1
            break
    else:
        r = 2
    return r


@case((4, 5))
def nested_for(n, m):
    s = 0
    for i in range(n):
        for j in range(m):
            if j == i:
                continue
            if j > 3:
                break
            s += i * 10 + j
    return s


@case((3,))
def python_for(x):
    s = 0
    for k in [1, 2, 3]:
        s += k * x
    return s


@case((3,))
def python_for_with_tensor_if(x):
    s = 0
    for k in (1, 5, 2):
        if k > x:
            s += k
    return s


@case((3,))
def python_for_break(x):
    for k in (1, 2, 3, 4):
        x += k
        if k == 3:
            break
    return x


@case((3,))
def python_enumerate_zip(x):
    s = 0
    for i, (a, b) in enumerate(zip([1, 2], [3, 4])):
        s += i * a * b * x
    return s


@case((5,))
def loop_variable_afterwards(n):
    for i in range(n):
        pass
    return i


@case((4,))
def defined_in_loop(n):
    for i in range(n):
        last = i * 2
    return last


@case((6,))
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@case((4,))
def loop_over_structure(n):
    state = (0, [1, 2])
    for i in range(n):
        state = (state[0] + i, [state[1][1], state[1][0] + i])
    return state[0] + state[1][0] * 10 + state[1][1] * 100


# objects and items


class Box:
    def __init__(self, x):
        self.x = x

    def double(self, limit):
        if self.x > limit:
            self.x = limit
        else:
            self.x = self.x * 2
        return self.x


@case((3,), (-3,))
def attribute_in_branch(x):
    box = Box(x)
    if x > 0:
        box.x = x * 2
    return box.x


@case((3,), (30,))
def attribute_in_method(x):
    box = Box(x)
    box.double(10)
    return box.x


@case((4,))
def attribute_in_loop(n):
    box = Box(0)
    for i in range(n):
        box.x = box.x + i
    return box.x


@case((3,), (-3,))
def new_attribute(x):
    box = Box(0)
    if x > 0:
        box.y = x
    else:
        box.y = -x
    return box.y


@case((3,), (-3,))
def dict_item(x):
    d = {"a": x, "b": 0}
    if x > 0:
        d["a"] = x * 5
    else:
        d["b"] = x
    return d["a"] + d["b"]


@case((3,), (-3,))
def list_item(x):
    items = [x, 1]
    if x > 0:
        items[0] = 9
    return items[0] + items[1]


@case((3,))
def python_list_append(x):
    out = []
    for k in range(3):
        out.append(x * k)
    return out[0] + out[1] + out[2]


# functions


def helper(x):
    if x > 2:
        return x * 10
    return x


@case((1,), (3,))
def calls_helper(x):
    return helper(x) + helper(x + 1)


@case((1,), (3,))
def nested_function(x):
    def inner(y):
        if y > 2:
            return y * x
        return y

    return inner(x) + inner(x + 1)


@case((1,), (3,))
def lambda_inside(x):
    f = lambda v: v * 2 if v > 2 else v
    return f(x)


def recursive_helper(x, depth):
    if depth == 0:
        return x
    if x > 3:
        x = x - 1
    else:
        x = x + 2
    return recursive_helper(x, depth - 1)


@case((1,), (9,))
def python_recursion(x):
    return recursive_helper(x, 4)


def with_defaults(x, *rest, scale=3, **others):
    if x > 0:
        x = x * scale
    for r in rest:
        x += r
    return x + others.get("extra", 0)


@case((1,), (-4,))
def argument_kinds(x):
    args = [1, 2]
    return with_defaults(x, *args, extra=100) + with_defaults(x, scale=5)


@case((1,), (5,))
def closure_change(x):
    limit = 3

    def over():
        return x > limit

    if over():
        x = x - limit
    limit = 0
    if over():
        x = x * 10
    return x


@case((2,), (5,))
def nonlocal_write(x):
    total = 0

    def add(v):
        nonlocal total
        if v > 3:
            total = total + v
        else:
            total = total - v

    add(x)
    add(4)
    return total


@case((1,), (3,))
def default_from_scope(x):
    k = 7

    def inner(y, z=k):
        return y + z if y > 2 else y - z

    return inner(x)


@case(([1, 2, 3],))
def builtins_over_tensors(xs):
    return len(xs) + abs(-4)


@case((2.7,))
def int_and_float(x):
    return float(int(x)) + 0.5


@case((3, 7), (7, 3))
def max_min(a, b):
    return max(a, b) * 10 + min(a, b)


# try, with, del, walrus


@case((3,), (0,), (12,))
def walrus_in_while(x):
    n = 0
    while (y := x - n) > 0:
        n += 1
        if n == 7:
            break
    return y + n * 10


@case((3,), (-3,))
def try_finally(x):
    try:
        if x > 0:
            y = 1
        else:
            y = 2
    finally:
        z = 10
    return y + z


@case((3,), (-3,))
def return_in_try(x):
    try:
        if x > 0:
            return 1
        return 2
    except ValueError:
        return 3


@case((3,))
def python_exception(x):
    try:
        raise KeyError("k")
    except KeyError:
        x = x + 1
    else:
        x = 0
    return x


class Manager:
    def __enter__(self):
        return 5

    def __exit__(self, *_):
        return False


@case((3,), (-3,))
def with_statement(x):
    with Manager() as m:
        if x > 0:
            return x + m
        x = x - m
    return x


@case((3,), (-3,))
def delete_name(x):
    t = x * 2
    if x > 0:
        x = t
    del t
    return x


@case((3,), (-3,))
def walrus(x):
    if (y := x * 2) > 2:
        return y
    return y - 1


@case((3,), (-3,))
def augmented_targets(x):
    a = [1, 2]
    if x > 0:
        a[0] += 5
    else:
        a[1] -= x
    return a[0] * 10 + a[1]


@case((3,), (-3,))
def comprehension(x):
    return sum([k * x if k > 1 else k for k in range(3)])


@case((3,), (-3,))
def assertion(x):
    assert x > -10, "small"
    return x


@case((5,), (0,))
def unused_result_of_branch(x):
    if x > 3:
        unused = 1  # noqa: F841
    return x


@case((5,), (1,))
def docstring_first(x):
    """Says what it does."""
    if x > 3:
        return x
    return 0
