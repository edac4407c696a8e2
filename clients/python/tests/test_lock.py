import contextlib, hashlib, json, os, re, shutil, signal, socket, subprocess, tempfile, threading, time, unittest, unittest.mock

import leasehold
from leasehold import lock


class Server:
    """A leasehold serve in a process of its own. $LEASEHOLD names the command."""

    def __init__(self, test, store, *flags, listen="127.0.0.1:0"):
        self.process = subprocess.Popen(
            [os.environ.get("LEASEHOLD", "leasehold"), "serve", "--store", store, "--listen", listen, *flags],
            stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        for line in self.process.stderr:
            if found := re.search(r"https?://[^/]*", line):
                self.url = found[0]
                break
        self.reader = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.reader.start()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        self.kill()
        self.reader.join()
        self.process.stderr.close()


class Proxy:
    """Forwards connections to a server. freeze stops those that are there, and leaves them open."""

    def __init__(self, test, url):
        self.target, self.frozen, self.sockets = url[7:].split(":"), set(), []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()
        test.addCleanup(self.end)

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.create_connection(self.target)
            self.sockets += near, far
            for one, other in (near, far), (far, near):
                threading.Thread(target=self.forward, args=(one, other), daemon=True).start()

    def forward(self, one, other):
        with contextlib.suppress(OSError):
            while b := one.recv(65536):
                if one in self.frozen:
                    return
                other.sendall(b)
            other.shutdown(socket.SHUT_WR)

    def freeze(self, refuse=False):
        self.frozen.update(self.sockets)
        if refuse:
            self.listener.shutdown(socket.SHUT_RDWR)

    def end(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for s in self.sockets:
            s.close()


class Tests(unittest.TestCase):
    def folder(self):
        path = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, path, True)
        return path

    def test_hold_and_release(self):
        url = Server(self, "memory:").url
        with lock("a/b.c %", url=url, purpose="first") as first:
            self.assertGreater(first.token, 0)
            self.assertGreater(first.left(), 20)
            first.check()
            with self.assertRaises(leasehold.Busy) as busy, lock("a/b.c %", url=url, wait=0):
                self.fail("two holders")
            self.assertEqual(busy.exception.holder["purpose"], "first")
            with self.assertRaises(leasehold.Busy), lock("a/b.c %", url=url, wait=0.2):
                self.fail("two holders")
        self.assertEqual(first.left(), 0)
        with self.assertRaises(leasehold.Lost):
            first.check()
        with lock("a/b.c %", url=url, wait=0) as second:
            self.assertGreater(second.token, first.token)

    def test_kinds_and_names(self):
        url = Server(self, "memory:").url
        with lock("..", url=url, kind="read"), lock("..", url=url, kind="read", wait=0):
            with self.assertRaises(leasehold.Busy), lock("..", url=url, kind="write", wait=0):
                self.fail("a writer beside readers")
        with lock("s", url=url, kind="semaphore", permits=2), lock("s", url=url, kind="semaphore", permits=2, wait=0):
            pass

    def test_short_lease_is_renewed(self):
        url = Server(self, "memory:").url
        with lock("a", url=url, ttl=2) as lease:
            self.assertFalse(lease.lost.wait(4))
            lease.check()

    def test_error_in_the_block_releases(self):
        url = Server(self, "memory:").url
        with self.assertRaises(ZeroDivisionError), lock("a", url=url):
            1 / 0
        with lock("a", url=url, wait=0):
            pass

    def test_killed_server_loses_the_lease_in_time(self):
        server = Server(self, "memory:")
        with self.assertRaises(leasehold.Lost), lock("a", url=server.url, ttl=3) as lease:
            sent = time.monotonic()
            server.kill()
            self.assertTrue(lease.lost.wait(60))
            self.assertLess(time.monotonic() - sent, 3)
            self.assertEqual(lease.left(), 0)

    def test_goes_on_at_another_server(self):
        store = "file:" + self.folder()
        one, two = Server(self, store), Server(self, store)
        with lock("a", url=one.url + "," + two.url[7:], ttl=4) as lease:
            token = lease.token
            one.kill()
            self.assertFalse(lease.lost.wait(6), "the lease was lost, though a server was left")
            self.assertEqual(lease.token, token)
            with self.assertRaises(leasehold.Busy), lock("a", url=two.url, wait=0):
                self.fail("two holders")
        with lock("a", url=two.url, wait=0):
            pass

    def test_silent_connection(self):
        """A connection that brings nothing any more is replaced, or the loss is told in time."""
        proxy = Proxy(self, Server(self, "memory:").url)
        with self.assertRaises(leasehold.Lost), lock("a", url=proxy.url, ttl=4) as lease:
            token = lease.token
            proxy.freeze()
            self.assertFalse(lease.lost.wait(8), "the lease was lost, though the server could be reached")
            self.assertEqual(lease.token, token)
            frozen = time.monotonic()
            proxy.freeze(refuse=True)
            self.assertTrue(lease.lost.wait(60))
            self.assertLess(time.monotonic() - frozen, 4)

    def test_no_thread_releases(self):
        url = Server(self, "memory:").url
        with unittest.mock.patch("threading.Thread.start", side_effect=RuntimeError("no thread")):
            with self.assertRaises(RuntimeError), lock("a", url=url):
                self.fail("a lease that nobody renews")
        with lock("a", url=url, wait=0):
            pass

    def test_forked_child_has_no_lease(self):
        """It neither releases the lock of its parent nor keeps it once that is killed."""
        url = Server(self, "memory:").url
        code = """if True:
            import leasehold, os, signal, sys, time
            parent = os.getpid()
            try:
                with leasehold.lock("a", url=sys.argv[1], ttl=3) as lease:
                    if os.fork() == 0:
                        lease.check()
                    time.sleep(60)
            except leasehold.Lost:
                print(os.getpid(), parent, flush=True)
                time.sleep(60)"""
        with subprocess.Popen(["python3", "-c", code, url], stdout=subprocess.PIPE, text=True) as process:
            child, parent = map(int, process.stdout.readline().split())
            self.addCleanup(os.kill, child, signal.SIGKILL)
            self.assertNotEqual(child, parent)
            with self.assertRaises(leasehold.Busy), lock("a", url=url, wait=4):
                self.fail("two holders")
            process.kill()
            process.stdout.close()
        with lock("a", url=url, wait=30):
            pass

    def test_broken_lease_is_lost(self):
        url = Server(self, "memory:").url
        with self.assertRaises(leasehold.Lost), lock("a", url=url) as lease:
            host = url[7:]
            subprocess.run(["curl", "-sf", "-d", json.dumps({"token": lease.token, "now": True, "reason": "test"}),
                            f"http://{host}/v1/locks/a/break"], check=True, stdout=subprocess.DEVNULL)
            self.assertTrue(lease.lost.wait(60))

    def test_two_holders_never_overlap(self):
        """Four threads take turns while the first of two servers is killed again and again."""
        store, mark = "file:" + self.folder(), os.path.join(self.folder(), "held")
        first, second = Server(self, store), Server(self, store)
        url, turns, wrong = first.url + "," + second.url[7:], [0], []
        stop = threading.Event()

        def work():
            while not stop.is_set():
                try:
                    with lock("a", url=url, ttl=3, wait=60) as lease:
                        os.mkdir(mark)
                        time.sleep(0.01)
                        os.rmdir(mark)
                        turns[0] += 1
                except leasehold.Lost as e:
                    wrong.append(e)
                except BaseException as e:
                    wrong.append(e)
                    stop.set()
                    raise
        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for _ in range(2):
            before = turns[0]
            while turns[0] < before + 5 and not stop.is_set():
                time.sleep(0.05)
            first.kill()
            first = Server(self, store, listen=first.url[7:])
        before = turns[0]
        while turns[0] < before + 5 and not stop.is_set():
            time.sleep(0.05)
        stop.set()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_refused_rights(self):
        path = os.path.join(self.folder(), "rights.json")
        with open(path, "w") as f:
            json.dump({"clients": [{"name": "ci", "token_sha256": [hashlib.sha256(b"secret").hexdigest()],
                                    "rules": [{"prefix": "ci/", "rights": ["lock"]}]}]}, f)
        token = os.path.join(self.folder(), "token")
        with open(token, "w") as f:
            f.write("secret\n")
        url = Server(self, "memory:", "--rights", path).url
        with lock("ci/a", url=url, token_file=token), lock("ci/b", url=url, token="secret"):
            pass
        for name, secret, kind in ("a", "secret", "forbidden"), ("ci/a", "guess", "unauthorized"):
            with self.assertRaises(leasehold.Error) as refused, lock(name, url=url, token=secret):
                self.fail("a lock without the right")
            self.assertEqual(refused.exception.kind, kind)
            self.assertNotIn(secret, str(refused.exception))
            self.assertTrue(refused.exception.advice)

    def test_nothing_answers(self):
        server = Server(self, "memory:")
        server.kill()
        with self.assertRaises(leasehold.Error) as e, lock("a", url=server.url):
            self.fail("a lock of nobody")
        self.assertEqual(e.exception.kind, "unreachable")
        for wrong in "http://locks.example:7420", "redis://127.0.0.1", "https://user:secret@locks.example":
            with self.assertRaises(ValueError) as e:
                lock("a", url=wrong)
            self.assertNotIn("secret", str(e.exception))


if __name__ == "__main__":
    unittest.main()
