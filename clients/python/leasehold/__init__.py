"""Locks of a "leasehold serve".

    with lock("nightly", purpose="backup") as lease:
        for part in parts:
            lease.check()
            write(part, token=lease.token)
"""
import contextlib, http.client, ipaddress, json, os, socket, ssl, threading, time, urllib.parse, weakref

__all__ = ["lock", "Lease", "Error", "Busy", "Lost"]

SILENCE = 30  # seconds without a line after which a server counts as gone; it writes every ten
LONGEST = 1 << 20  # bytes of a line
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


_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def _now():
    """Seconds by a clock that goes on while the machine sleeps, where there is one."""
    return time.monotonic() if _CLOCK is None else time.clock_gettime(_CLOCK)


def lock(name, *, ttl=30.0, wait=None, kind="mutex", permits=None, weight=None, purpose=None,
         url=None, token=None, token_file=None, ca_file=None, cert_file=None, key_file=None):
    """Return a context manager that holds a lock and gives its Lease.

    wait bounds the wait in seconds: None has no bound, 0 does not wait. url names one server or
    several, "https://a:7420,b:7420"; the default is $LEASEHOLD_STORE if that is a URL of HTTP, or
    http://127.0.0.1:7420. token_file is read for each request; the default is $LEASEHOLD_TOKEN.
    """
    fields = dict(ttl_ms=round(ttl * 1000), kind=kind, permits=permits, weight=weight, purpose=purpose)
    fields = {k: v for k, v in fields.items() if v is not None}
    servers = _Servers(url, token, token_file, ca_file, cert_file, key_file)
    return _held(servers, name, fields, wait)


@contextlib.contextmanager
def _held(servers, name, fields, wait):
    lease = Lease(servers, name, fields, wait)
    try:
        yield lease
        lease.check()
    finally:
        lease._end()


class Lease:
    """A lock that is held. token is the fencing token, a larger one with each grant. lost is a
    threading.Event, which is set a twentieth of the TTL before the lease ends unless it is renewed."""

    def __init__(self, servers, name, fields, wait):
        self.name, self.owner, self.token, self.slot = name, None, None, None
        self.lost = threading.Event()
        self._servers, self._fields, self._why = servers, fields, None
        self._margin = fields["ttl_ms"] / 20000
        self._silence = min(SILENCE, fields["ttl_ms"] / 2000)  # the server writes more often than that
        self._path = "/v1/locks/" + _quote(name)
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._stream, self._forked = None, False
        self._wait(None if wait is None else _now() + wait)
        _ours.add(self)
        try:
            for work in self._follow, self._watch:
                threading.Thread(target=work, name=f"leasehold {name}", daemon=True).start()
        except BaseException:
            self._end()
            raise

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

    def _wait(self, until):
        """Get the lock. Begin the wait anew at another server if one is gone."""
        heard = None  # when a server last answered
        while True:
            left = None if until is None else max(0, until - _now())
            body = dict(self._fields, keep=True, **({} if left is None else {"wait_ms": round(left * 1000)}))
            failed = None
            for server in self._servers.all():
                try:
                    stream = _Stream(self._servers, server, self._path + "/hold", body)
                except (OSError, Error) as e:
                    if isinstance(e, Error) and e.kind != "leaving":
                        raise
                    failed = e
                    continue
                try:
                    for event in stream.events():
                        heard = _now()
                        if event["event"] == "held":
                            self.owner, self.token, self.slot = event["owner"], event["token"], event["slot"]
                            self._stream, self._deadline = stream, stream.deadline(event)
                            stream.be_patient(self._silence)
                            stream = None
                            return
                        if event["event"] == "failed":
                            raise _error(event)
                        if event["event"] == "leaving":
                            break
                except OSError as e:
                    failed = e
                finally:
                    if stream:
                        stream.close()
            if heard is None or _now() - heard > SILENCE or until is not None and _now() >= until:
                raise Error("unreachable", f"no server at {self._servers} answers: {failed}") from failed
            time.sleep(0.2)

    def _follow(self):
        """Read what the server says of the lease, and go on elsewhere if it says no more."""
        stream, pause = self._stream, 0
        while not self._ended.wait(pause) and not self.lost.is_set():
            try:
                for event in stream.events():
                    if event["event"] == "lost" or event.get("token", self.token) != self.token:
                        return self._lose(event.get("reason", "another lease was granted"))
                    if event["event"] == "failed":
                        error = _error(event)
                        if error.kind == "not-held":
                            return self._lose(error.detail)
                        break
                    if event["event"] in ("held", "leaving"):
                        with self._lock:
                            self._deadline = max(self._deadline, stream.deadline(event))
                    if event["event"] == "leaving" or _now() - stream.sent > ANEW:
                        break
            except (OSError, ValueError, Error) as e:
                if getattr(e, "kind", None) == "not-held":
                    return self._lose(e.detail)
            stream.close()
            for server in self._servers.all():  # nobody else can have the lock before the deadline
                try:
                    body = dict(self._fields, keep=True, owner=self.owner)
                    stream = _Stream(self._servers, server, self._path + "/hold", body, self._silence / 4)
                    stream.be_patient(self._silence)
                    with self._lock:
                        self._stream = stream
                    break
                except OSError:
                    continue
                except Error as e:
                    if e.kind == "not-held":
                        return self._lose(e.detail)
            pause = 0.2
        stream.close()

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
            for server in self._servers.all():
                try:
                    _Stream(self._servers, server, self._path + "/release", {"owner": self.owner}, timeout=5).close()
                    return stream.close()
                except OSError:
                    continue
                except Error as e:
                    if e.kind not in ("leaving", "no-quorum", "store-failed", "too-late", "too-many"):
                        return stream.close()
            if _now() >= end:
                return stream.close()
            time.sleep(0.2)


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
        self.tls = parts.scheme == "https"
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or "@" in parts.netloc:
            raise ValueError("url is not https://HOST:PORT or http://HOST:PORT: give a token as token or token_file")
        self.base, self._hosts = parts.path.rstrip("/"), parts.netloc.split(",")
        for host in self._hosts:
            if not self.tls and not _loopback(urllib.parse.urlsplit("//" + host).hostname):
                raise ValueError(f"http:// is for this machine: use https:// for {host}")
        self._token, self._file, self._context = token, token_file, None
        if self.tls:
            self._context = ssl.create_default_context(cafile=ca_file)
            if cert_file:
                self._context.load_cert_chain(cert_file, key_file)

    def __str__(self):
        return ",".join(self._hosts)

    def all(self):
        return list(self._hosts)

    def connect(self, host, timeout):
        if self.tls:
            return http.client.HTTPSConnection(host, timeout=timeout, context=self._context)
        return http.client.HTTPConnection(host, timeout=timeout)

    def headers(self):
        token = self._token or os.environ.get("LEASEHOLD_TOKEN")
        if self._file:
            with open(self._file) as f:
                token = f.read().strip()
        headers = {"Content-Type": "application/json", "Accept": "application/x-ndjson"}
        return dict(headers, Authorization="Bearer " + token) if token else headers


class _Stream:
    """One request and the lines of its answer."""

    def __init__(self, servers, host, path, body, timeout=SILENCE):
        self.sent = _now()
        self._connection = servers.connect(host, timeout)
        try:
            self._connection.connect()
            self._socket = self._connection.sock  # which the connection forgets
            _ours.add(self)
            self._connection.request("POST", servers.base + path, json.dumps(body), servers.headers())
            self._response = self._connection.getresponse()
            if self._response.status >= 300:
                try:
                    problem = json.loads(self._response.read(1 << 20))
                except ValueError:
                    problem = None
                if not isinstance(problem, dict):
                    problem = {"status": self._response.status, "detail": f"{host} is no leasehold serve: status {self._response.status}"}
                raise _error(problem)
        except http.client.HTTPException as e:
            self._connection.close()
            raise ConnectionError(f"{host}: {e!r}") from e
        except BaseException:
            self._connection.close()
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


def _loopback(host):
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
