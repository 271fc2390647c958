"""Ctrl-C at any moment: a run's writes are all done or none of them is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

_PROGRAM = """
import os, random, signal, sys, threading, time
import headrace as tf

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

kind, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
if kind == "large":
    vs = [tf.Variable(tf.zeros([200, 200]), use_resource=i % 2 == 0) for i in range(6)]
    step = tf.group(*[v.assign_add(tf.ones([200, 200])) for v in vs])
elif kind == "optimizer":
    vs = [tf.Variable(tf.zeros([n])) for n in (3, 5, 200, 20000, 7, 30)]
    loss = tf.add_n([tf.reduce_sum(v) for v in vs])
    step = tf.train.GradientDescentOptimizer(-1.0).minimize(loss)
elif kind == "loop":
    vs = [tf.Variable(0.0) for i in range(6)]
    def body(i):
        with tf.control_dependencies([v.assign_add(0.25) for v in vs]):
            return i + 1
    step = tf.while_loop(lambda i: i < 4, body, [0]).op
else:
    vs = [tf.Variable(0.0, use_resource=i % 2 == 0) for i in range(6)]
    step = tf.group(*[v.assign_add(1.0) for v in vs])
counters = [tf.reshape(v, [-1])[0] for v in vs]
s = tf.Session(executor=sys.argv[4])
s.run(tf.global_variables_initializer())
s.run(step), s.run(counters)
main, done, sent = threading.get_ident(), False, 0
begun = threading.Event()  # a busy machine may be slow to start the thread

def interrupt():
    global sent
    begun.wait()
    while not done:
        time.sleep(random.random() * 0.002)
        if not done:
            sent += 1
            signal.pthread_kill(main, signal.SIGINT)

def run_step():
    if kind == "partial":
        handle = s.partial_run_setup([step])
        s.partial_run(handle, step)
    else:
        s.run(step)

counts = dict(caught=0, torn=0)

def check():
    values = s.run(counters)
    counts["torn"] += len(set(map(float, values))) != 1
    return values[0]

def work():
    begun.set()
    # a busy machine may need longer to be interrupted often enough
    while time.monotonic() < end or (counts["caught"] <= 5 and time.monotonic() < end + 60):
        check()
        try:
            for _ in range(50):
                run_step()
        except KeyboardInterrupt:
            counts["caught"] += 1

def patiently(call):
    while True:
        try:
            try:
                try:
                    return call()
                except KeyboardInterrupt:
                    pass
            except KeyboardInterrupt:
                pass
        except KeyboardInterrupt:
            pass

end = time.monotonic() + float(sys.argv[3])
sender = threading.Thread(target=interrupt, daemon=True)
sender.start()
patiently(work)

def stop():
    global done
    done = True
    sender.join()
    time.sleep(0.05)

patiently(stop)
total, caught, torn = patiently(check), counts["caught"], counts["torn"]
print(caught, sent, torn, total)
assert torn == 0 and caught > 5 and total > 20, (torn, caught, total)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pthread_kill")
@pytest.mark.parametrize("executor", ["numpy", "reference"])
@pytest.mark.parametrize("kind", ["small", "large", "optimizer", "loop", "partial"])
def test_interrupts_at_random_moments(kind: str, executor: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, kind, "1", "2.5", executor],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


_ENDLESS = """
import signal, threading, time
import headrace as tf
from headrace.runtime import interrupts

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it

interrupts.MAX_WAIT_SECONDS = 0.5
v = tf.Variable(0.0)
def body(i):
    with tf.control_dependencies([v.assign_add(1.0)]):
        return i + 1
loop = tf.while_loop(lambda i: i >= 0, body, [0])
s = tf.Session()
s.run(v.initializer)
main = threading.get_ident()

def interrupt():
    while not s.run(v) > 0:  # a busy machine may take long to begin the loop
        time.sleep(0.05)
    signal.pthread_kill(main, signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
try:
    s.run(loop)
except KeyboardInterrupt:
    print("interrupted", s.run(v) > 0)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pthread_kill")
def test_a_loop_that_writes_for_ever_is_interrupted() -> None:
    out = subprocess.run(
        [sys.executable, "-c", _ENDLESS], capture_output=True, text=True, timeout=300, check=True
    )
    assert out.stdout.split() == ["interrupted", "True"]


_HANDLER = """
import signal
import headrace as tf

seen = []
signal.signal(signal.SIGINT, lambda *a: seen.append(a))
v = tf.Variable(0.0)
add = v.assign_add(1.0)
s = tf.Session()
s.run(v.initializer)
s.run(add)
signal.raise_signal(signal.SIGINT)
assert len(seen) == 1, seen  # the user's own handler is still asked
signal.signal(signal.SIGINT, signal.default_int_handler)  # as notebooks do for every cell
s.run(add)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("ok")
"""


def test_other_handlers_are_kept() -> None:
    out = subprocess.run(
        [sys.executable, "-c", _HANDLER], capture_output=True, text=True, timeout=300, check=True
    )
    assert out.stdout.strip() == "ok"


_STOPPED = """
import os, signal, sys, threading, time
import headrace as tf
from headrace.runtime import interrupts

signal.signal(signal.SIGINT, signal.default_int_handler)
interrupts.MAX_WAIT_SECONDS = 2.0
vs = [tf.Variable(0.0) for i in range(4)]
def body(i):
    with tf.control_dependencies([v.assign_add(1.0) for v in vs]):
        return i + 1
loop = tf.while_loop(lambda i: i < 3000, body, [0])
s = tf.Session(executor=sys.argv[1])
s.run(tf.global_variables_initializer())
main = threading.get_ident()

def interrupt():
    while not s.run(vs[0]) > 0:
        pass
    signal.pthread_kill(main, signal.SIGINT)
    os.kill(os.getpid(), signal.SIGSTOP)

thread = threading.Thread(target=interrupt)
thread.start()
try:
    s.run(loop)
    time.sleep(5)  # the interrupt is sent again a moment later
except KeyboardInterrupt:
    pass
thread.join()
values = set(s.run(vs))
assert len(values) == 1, values
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no pthread_kill")
@pytest.mark.parametrize("executor", ["numpy", "reference"])
def test_the_time_in_which_a_process_is_stopped_does_not_count(executor: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", _STOPPED, executor], stderr=subprocess.PIPE, text=True
    )
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        time.sleep(3)
        process.send_signal(signal.SIGCONT)
        _, status = os.waitpid(process.pid, 0)
    assert process.stderr is not None
    assert status == 0, process.stderr.read()[-2000:]
    process.stderr.close()
    process.returncode = 0
