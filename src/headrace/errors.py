"""The exception tree of ``tf.errors``.

Every run-time failure is an :class:`OpError` with one of TensorFlow's codes, the operation it
happened in and a message that ends with the line of the user's program that made the operation.

    >>> raise InvalidArgumentError(None, None, "batch sizes differ")
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from typing import Any

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InaccessibleTensorError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
    "as_op_error",
    "error_class_for_code",
    "error_code_from_exception_type",
    "exception_type_from_error_code",
    "os_error",
]

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """The base of errors of a run: ``op``, ``node_def``, ``message``, ``error_code``.

    The text ends with the line of the program that made the operation.
    """

    code: int = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int | None = None) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        if error_code is not None:
            self.code = error_code

    @property
    def message(self) -> str:
        return self._message

    @property
    def op(self) -> Any:
        return self._op

    @property
    def node_def(self) -> Any:
        if self._node_def is None and self._op is not None:
            return self._op.node_def
        return self._node_def

    @property
    def error_code(self) -> int:
        return self.code

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> tuple[Any, ...]:
        # operations do not travel between processes: the message says everything that a reader
        # needs
        return (_rebuild, (type(self), self._message, self.code))


def _rebuild(cls: type[OpError], message: str, code: int) -> OpError:
    error = cls.__new__(cls)
    OpError.__init__(error, None, None, message, code)
    return error


class _CodedError(OpError):
    def __init__(self, node_def: Any, op: object, message: str) -> None:
        super().__init__(node_def, op, message)


class CancelledError(_CodedError):
    """The run was cancelled, for example by closing its session.

    Closing a queue with ``cancel_pending_enqueues=True`` raises it in waiting enqueues. The
    attributes ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = CANCELLED


class UnknownError(_CodedError):
    """An error of a kind that has no code of its own.

    An exception in a Python function (``tf.py_func``) that has no error class here becomes one.
    ``error_code`` is a number of ``tf.errors``, 2 (UNKNOWN) by default.
    """

    code = UNKNOWN

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int = UNKNOWN) -> None:
        super().__init__(node_def, op, message)
        self.code = error_code


class InvalidArgumentError(_CodedError):
    """An operation was given values that it cannot work with.

    Shapes that do not match, an index outside of a dimension, a placeholder that was not fed, a
    failed ``tf.Assert``. The message names the values and the line that made the operation;
    ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = INVALID_ARGUMENT


class DeadlineExceededError(_CodedError):
    """A deadline passed before the operation was complete.

    ``RunOptions(timeout_in_ms=…)`` sets one for a run, ``ConfigProto(operation_timeout_in_ms=…)``
    for all runs of a session. The attributes ``node_def``, ``op`` and ``message`` are the
    arguments.
    """

    code = DEADLINE_EXCEEDED


class NotFoundError(_CodedError):
    """Something that was asked for (a file, a name) does not exist.

    For example a file, or a key of a checkpoint that the Saver wants. The attributes ``node_def``,
    ``op`` and ``message`` are the arguments.
    """

    code = NOT_FOUND


class AlreadyExistsError(_CodedError):
    """Something that was to be made exists already.

    For example a directory, the target of ``tf.gfile.Copy``, or a key of a table with another
    value. The attributes ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = ALREADY_EXISTS


class PermissionDeniedError(_CodedError):
    """The caller may not do this, for instance write into a read-only folder.

    The attributes ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = PERMISSION_DENIED


class UnauthenticatedError(_CodedError):
    """The caller has not proved who it is (of remote services; not raised by Headrace).

    It is here so that programs can catch it.
    """

    code = UNAUTHENTICATED


class ResourceExhaustedError(_CodedError):
    """Something ran out, most often memory.

    Also a full disk. The message says how much was asked for; ``node_def``, ``op`` and ``message``
    are the arguments.
    """

    code = RESOURCE_EXHAUSTED


class FailedPreconditionError(_CodedError):
    """The system is not in the state the operation needs, for example a variable that was never
    initialised.
    """

    code = FAILED_PRECONDITION


class AbortedError(_CodedError):
    """The operation was broken off, typically by a concurrent action.

    As in all these errors ``node_def`` and ``op`` say which operation raised it and ``message``
    why; they are attributes of the same names. Sessions that recover (``MonitoredSession``) make a
    new session after this one.
    """

    code = ABORTED


class OutOfRangeError(_CodedError):
    """Iteration went past the valid range, for example the end of the input.

    The usual end of a loop over a dataset or a queue; the attributes ``node_def``, ``op`` and
    ``message`` are the arguments.

        element = tf.data.Dataset.range(0).make_one_shot_iterator().get_next()
        with tf.Session() as sess:
            try:
                sess.run(element)
            except tf.errors.OutOfRangeError:
                pass
    """

    code = OUT_OF_RANGE


class UnimplementedError(_CodedError):
    """The operation is known but has no implementation for this case.

    For example a type or a data format that no kernel takes. The message says which; ``node_def``,
    ``op`` and ``message`` are the arguments.
    """

    code = UNIMPLEMENTED


class InternalError(_CodedError):
    """An invariant of Headrace itself was broken.

    It is never the fault of a program: please report it with the graph. The attributes
    ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = INTERNAL


class UnavailableError(_CodedError):
    """A service is not reachable at present.

    Sessions that recover (``MonitoredSession``) take it as a reason to try again. The attributes
    ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = UNAVAILABLE


class DataLossError(_CodedError):
    """Data that was read is damaged.

    A wrong checksum in a TFRecord or checkpoint file, a file that ends too early, compressed bytes
    that cannot be read. The attributes ``node_def``, ``op`` and ``message`` are the arguments.
    """

    code = DATA_LOSS


class InaccessibleTensorError(ValueError):
    """A tensor is used where it has no value: fetched from inside a branch, loop or function."""


class OperatorNotAllowedInGraphError(TypeError):
    """A tensor of a graph, whose value is not known yet, was used where Python needs the value."""


_BY_CODE: dict[int, type[OpError]] = {
    cls.code: cls
    for cls in (
        CancelledError,
        UnknownError,
        InvalidArgumentError,
        DeadlineExceededError,
        NotFoundError,
        AlreadyExistsError,
        PermissionDeniedError,
        UnauthenticatedError,
        ResourceExhaustedError,
        FailedPreconditionError,
        AbortedError,
        OutOfRangeError,
        UnimplementedError,
        InternalError,
        UnavailableError,
        DataLossError,
    )
}


def error_class_for_code(code: int) -> type[OpError]:
    """The exception class of a status code."""
    return _BY_CODE.get(code, UnknownError)


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The exception class of a status code of ``tf.errors``; KeyError if there is none."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The status code of an exception class of ``tf.errors``; KeyError if it has none."""
    if cls not in _BY_CODE.values():
        raise KeyError(cls)
    return cls.code


# other libraries' errors ------------------------------------------------------------------------

_ERRNO_NAMES: dict[type[OpError], str] = {
    InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG EDOM EFAULT EILSEQ ENOTTY ESPIPE ELOOP",
    DeadlineExceededError: "ETIMEDOUT ETIME",
    NotFoundError: "ENODEV ENOENT ENXIO ESRCH",
    AlreadyExistsError: "EEXIST EALREADY",
    PermissionDeniedError: "EPERM EACCES EROFS",
    FailedPreconditionError: "ENOTEMPTY EISDIR ENOTDIR EBADF EBUSY EPIPE ETXTBSY",
    # EFBIG is OutOfRangeError in TensorFlow, which ends loops over data silently; a file that may
    # not grow is like a full disk
    ResourceExhaustedError: "ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENOMEM EFBIG",
    UnimplementedError: "ENOSYS ENOTSUP EXDEV",
    UnavailableError: (
        "EAGAIN ECONNREFUSED ECONNABORTED ECONNRESET EINTR EHOSTDOWN EHOSTUNREACH ENOLCK"
    ),
    AbortedError: "EDEADLK ESTALE",
    CancelledError: "ECANCELED",
}
_BY_ERRNO: dict[int, type[OpError]] = {
    getattr(errno, name): kind
    for kind, names in _ERRNO_NAMES.items()
    for name in names.split()
    if hasattr(errno, name)
}


def os_error(path: Any, error: OSError) -> OpError:
    """The error that stands for one of the operating system's.

    A full disk is a ResourceExhaustedError.
    """
    if error.errno is None:  # raised by a library that reads a damaged file, not by the system
        return DataLossError(None, None, f"{os.fsdecode(path)}; {error}")
    kind = _BY_ERRNO.get(error.errno, UnknownError)
    return kind(None, None, f"{os.fsdecode(path)}; {error.strerror or error}")


def as_op_error(error: BaseException) -> OpError | None:
    """The error of this tree that stands for what a kernel or a reader raised.

    None for what is no failure of an op.
    """
    if isinstance(error, OpError):
        return error
    if isinstance(error, MemoryError):
        return ResourceExhaustedError(None, None, f"Out of memory: {error}")
    if isinstance(error, OSError):
        return os_error(error.filename if error.filename is not None else "", error)
    if isinstance(error, (EOFError, zlib.error, struct.error)):
        return DataLossError(None, None, str(error) or type(error).__name__)
    if isinstance(error, (ValueError, TypeError, IndexError, ArithmeticError)):
        return InvalidArgumentError(None, None, str(error))
    if isinstance(error, NotImplementedError):
        return UnimplementedError(None, None, str(error))
    if isinstance(error, RuntimeError) and not isinstance(error, RecursionError):
        return InternalError(None, None, str(error))  # of a kernel library
    return None
