"""Locks of a "leasehold serve".

    with lock("nightly", purpose="backup") as lease:
        for part in parts:
            lease.check()
            write(part, token=lease.token)
"""
import contextlib, functools, http.client, json, os, re, socket, ssl, threading, time, urllib.parse, weakref

__all__ = ["lock", "Lease", "Error", "Busy", "Lost"]

SILENCE = 30  # seconds without a line after which a server counts as gone; it writes every ten
LONGEST = 1 << 20  # bytes of a line
PASSING = "leaving", "no-quorum", "store-failed", "too-late", "too-many"  # kinds after which a release is tried again
ANEW = 3600  # seconds after which a hold begins anew, since clocks differ in speed


class Error(Exception):
    """A refusal by the server, or no answer. kind is the last word of the problem's type, such as
    "forbidden", or "unreachable" if no server answered. holder is a dict, or None."""

    def __init__(self, kind, detail, problem=None):
        self.kind, self.detail, self.problem = kind, detail, problem or {}
        self.status, self.advice = self.problem.get("status"), self.problem.get("advice")
        self.holder, self.expires_in_ms = self.problem.get("holder"), self.problem.get("expires_in_ms")
        super().__init__(f"{kind}: {detail}" + (f" ({self.advice})" if self.advice else ""))


class Busy(Error):
    """Another owner had the lock for as long as this one wanted to wait."""


class Lost(Error):
    """The lease is over, or is about to be. Stop what it protects."""


# _now returns seconds by a clock that goes on while the machine sleeps, where there is one.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_now = time.monotonic if _CLOCK is None else functools.partial(time.clock_gettime, _CLOCK)


def lock(name, *, ttl=30.0, wait=None, kind="mutex", permits=None, weight=None, purpose=None,
         url=None, token=None, token_file=None, ca_file=None, cert_file=None, key_file=None):
    """Return a context manager that holds a lock and gives its Lease.

    wait bounds the wait in seconds: None has no bound, 0 does not wait. url names one server or
    several, "https://a:7420,b:7420"; the default is $LEASEHOLD_STORE if that is a URL of HTTP, or
    http://127.0.0.1:7420. token_file is read for each request; the default is $LEASEHOLD_TOKEN.
    """
    fields = dict(ttl_ms=round(ttl * 1000), kind=kind, permits=permits, weight=weight, purpose=purpose)
    fields = {k: v for k, v in fields.items() if v is not None}
    return _held(_Servers(url, token, token_file, ca_file, cert_file, key_file), name, fields, wait)


@contextlib.contextmanager
def _held(servers, name, fields, wait):
    lease = Lease(servers, name, fields, wait)
    try:
        for work in lease._follow, lease._watch:
            threading.Thread(target=work, name=f"leasehold {name}", daemon=True).start()
        yield lease
        lease.check()
    finally:
        lease._end()


class Lease:
    """A lock that is held. token is the fencing token, a larger one with each grant. lost is a
    threading.Event, which is set a twentieth of the TTL before the lease ends unless it is renewed."""

    def __init__(self, servers, name, fields, wait):
        self.name, self.owner, self.token, self.slot = name, None, None, None
        self.lost, self._ended, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._servers, self._fields, self._path = servers, fields, "/v1/locks/" + _quote(name)
        self._stream, self._why, self._forked = None, None, False
        self._margin = fields["ttl_ms"] / 20000
        self._silence = min(SILENCE, fields["ttl_ms"] / 2000)  # the server writes more often than that
        self._wait(None if wait is None else _now() + wait)
        _ours.add(self)

    def left(self):
        """Return for how many seconds the lease is valid, 0 if it is lost."""
        with self._lock:
            over = self.lost.is_set() or self._ended.is_set()
            left = 0 if over else max(0, self._deadline - self._margin - _now())
        if left == 0 and not over:
            self._lose("the lease was not renewed in time")
        return left

    def check(self):
        """Raise Lost if the lease is lost."""
        if self.left() == 0:
            raise Lost("lost", self._why or "the lease was released")

    def _hold(self, timeout=SILENCE, **more):
        return self._servers.ask(self._path + "/hold", dict(self._fields, keep=True, **more), timeout)

    def _wait(self, until):
        """Get the lock. Begin the wait anew at another server if one is gone."""
        heard = None  # when a server last answered
        while True:
            left = {} if until is None else {"wait_ms": max(0, round((until - _now()) * 1000))}
            stream = failed = None
            try:
                stream = self._hold(**left)
                for event in stream.events():
                    heard = _now()
                    if event["event"] == "held":
                        self.owner, self.token, self.slot = event["owner"], event["token"], event["slot"]
                        self._stream, self._deadline = stream, stream.deadline(event)
                        return stream.be_patient(self._silence)
                    if event["event"] == "failed":
                        raise _error(event)
            except (OSError, Error) as e:
                if isinstance(e, Error) and e.kind != "leaving":
                    raise
                failed = e
            finally:
                if stream and not self._stream:
                    stream.close()
            if heard is None or _now() - heard > SILENCE or until is not None and _now() >= until:
                raise Error("unreachable", f"no server at {','.join(self._servers.hosts)} answers: {failed}") from failed
            self._servers.hosts.append(self._servers.hosts.pop(0))  # the next one first
            time.sleep(0.2)

    def _follow(self):
        """Read what the server says of the lease, and go on elsewhere if it says no more."""
        stream, pause = self._stream, 0
        while not self._ended.wait(pause) and not self.lost.is_set():
            try:
                with contextlib.suppress(OSError):
                    self._read(stream)
                stream.close()
                # Nobody else can have the lock before the deadline.
                stream = self._hold(self._silence / 4, owner=self.owner)
                stream.be_patient(self._silence)
                with self._lock:
                    self._stream = stream
            except Error as e:
                if e.kind in ("lost", "not-held"):
                    return self._lose(e.detail)
            except OSError:
                pass
            pause = 0.2
        stream.close()

    def _read(self, stream):
        for event in stream.events():
            if event["event"] == "lost" or event.get("token", self.token) != self.token:
                raise Lost("lost", event.get("reason", "another lease was granted"))
            if event["event"] == "failed":
                raise _error(event)
            if event["event"] in ("held", "leaving"):
                with self._lock:
                    self._deadline = max(self._deadline, stream.deadline(event))
            if event["event"] == "leaving" or _now() - stream.sent > ANEW:
                return

    def _watch(self):
        """Set lost when the time is over. Short waits, since those of threads stop in a sleep of the machine."""
        while self.left() and not self._ended.wait(min(0.25, self.left())):
            pass

    def _lose(self, why):
        with self._lock:
            self._why = self._why or why
        self.lost.set()

    def _leave(self):
        self._lock, self._ended, self.lost = threading.Lock(), threading.Event(), threading.Event()
        self._why, self._forked = "the process that holds the lock has forked this one", True
        self.lost.set()

    def _end(self):
        """Release the lock. If no server answers, it is free when the TTL is over."""
        if self._forked:
            return
        self._ended.set()
        with self._lock:
            stream, end = self._stream, min(self._deadline, _now() + 5)
        while True:
            try:
                self._servers.ask(self._path + "/release", {"owner": self.owner}, timeout=5).close()
                break
            except (OSError, Error) as e:
                if _now() >= end or getattr(e, "kind", "leaving") not in PASSING:
                    break
            time.sleep(0.2)
        stream.close()


_ours = weakref.WeakSet()  # leases and streams of this process
# A child that shared a connection would keep the lock if its parent is killed.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [one._leave() for one in list(_ours)])


class _Servers:
    """The servers of a URL, and how to talk to them."""

    def __init__(self, url, token, token_file, ca_file, cert_file, key_file):
        if url is None:
            url = os.environ.get("LEASEHOLD_STORE", "")
            url = url if url.startswith(("http://", "https://")) else "http://127.0.0.1:7420"
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or "@" in parts.netloc:
            raise ValueError("url is not https://HOST:PORT or http://HOST:PORT: give a token as token or token_file")
        self.base, self.hosts = parts.path.rstrip("/"), parts.netloc.split(",")
        for host in self.hosts:
            if parts.scheme == "http" and not re.fullmatch(r"localhost|127(\.\d+){3}|::1", urllib.parse.urlsplit("//" + host).hostname or ""):
                raise ValueError(f"http:// is for this machine: use https:// for {host}")
        self._token, self._file, self.connect = token, token_file, http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=ca_file)
            if cert_file:
                context.load_cert_chain(cert_file, key_file)
            self.connect = functools.partial(http.client.HTTPSConnection, context=context)

    def ask(self, path, body, timeout):
        """Send a request to one server after the other, until one does it. Raise the refusal of one, or an OSError."""
        failed = None
        for host in self.hosts:
            try:
                return _Stream(self, host, path, body, timeout)
            except OSError as e:
                failed = failed or e
            except Error as e:
                if e.kind in ("busy", "not-held"):
                    raise
                failed = e
        raise failed

    def headers(self):
        token = self._token or os.environ.get("LEASEHOLD_TOKEN")
        if self._file:
            with open(self._file) as f:
                token = f.read().strip()
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        return dict(headers, Authorization="Bearer " + token) if token else headers


class _Stream:
    """One request and the lines of its answer."""

    def __init__(self, servers, host, path, body, timeout):
        self.sent = _now()
        self._connection = servers.connect(host, timeout=timeout)
        try:
            self._connection.connect()
            self._socket = self._connection.sock  # which the connection forgets
            _ours.add(self)
            self._connection.request("POST", servers.base + path, json.dumps(body), servers.headers())
            self._response = self._connection.getresponse()
            if self._response.status >= 300:
                problem = {"status": self._response.status, "detail": f"{host} is no leasehold serve: status {self._response.status}"}
                with contextlib.suppress(ValueError, TypeError):
                    problem = dict(json.loads(self._response.read(LONGEST)))
                raise _error(problem)
        except BaseException as e:
            self._connection.close()
            if isinstance(e, http.client.HTTPException):
                raise ConnectionError(f"{host}: {e!r}") from e
            raise

    def events(self):
        """Yield the lines, and raise OSError at their end."""
        try:
            while line := self._response.readline(LONGEST):
                yield json.loads(line)
        except (http.client.HTTPException, ValueError, AttributeError) as e:
            raise ConnectionError(f"the answer ends: {e!r}") from e
        raise ConnectionError("the answer ends")

    def deadline(self, event):
        """Return when the lease of a held line ends, if no later line says more."""
        return min(self.sent + event["at_ms"] / 1000, _now()) + event["valid_ms"] / 1000

    def be_patient(self, seconds):
        """Raise an OSError in events after so many seconds without a line."""
        with contextlib.suppress(OSError):  # closed meanwhile
            self._socket.settimeout(seconds)

    def _leave(self):
        with contextlib.suppress(OSError), open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), self._socket.fileno())

    def close(self):
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread may be reading
        self._connection.close()


def _error(problem):
    kind = problem.get("type", "").rpartition("#")[2] or "http"
    return (Busy if kind == "busy" else Error)(kind, problem.get("detail", ""), problem)


def _quote(name):
    quoted = urllib.parse.quote(name, safe="")
    return quoted.replace(".", "%2E") if name in (".", "..", b".", b"..") else quoted
