"""Takes turns at a lock of the Redis door with redis-py's Lock: see door_test.go."""
import os, redis, sys, time

host, port, key, ttl, brief, room, turns = sys.argv[1:]
r = redis.Redis(host=host, port=int(port), socket_timeout=5)
while not os.path.exists(room + ".stop"):
    try:
        lock, asked = r.lock(key, timeout=int(ttl) / 1000), time.monotonic()
        if lock.acquire(blocking=False):
            if time.monotonic() - asked < int(brief) / 1000:
                os.close(os.open(room, os.O_CREAT | os.O_EXCL))
                time.sleep(0.002)
                os.remove(room)
                with open(turns, "a") as f:
                    f.write(".")
            lock.release()
    except redis.RedisError:
        pass
    time.sleep(0.005)
