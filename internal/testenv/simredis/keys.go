package simredis

import "strconv"

// These commands work on keys of any type.

func (k *keyspace) del(keys []string) reply {
	n := int64(0)
	for _, name := range keys {
		if k.drop(name) {
			n++
		}
	}
	return number(n)
}

func (k *keyspace) exists(keys []string) reply {
	n := int64(0)
	for _, name := range keys {
		if _, ok := k.get(name); ok {
			n++
		}
	}
	return number(n)
}

func (k *keyspace) kind(a []string) reply {
	switch e, ok := k.get(a[0]); {
	case !ok:
		return reply{kind: '+', text: "none"}
	case e.list != nil:
		return reply{kind: '+', text: "list"}
	case e.hash != nil:
		return reply{kind: '+', text: "hash"}
	case e.scores != nil:
		return reply{kind: '+', text: "zset"}
	}
	return reply{kind: '+', text: "string"}
}

func (k *keyspace) length(key string, list bool) reply {
	switch e, ok := k.get(key); {
	case !ok:
		return number(0)
	case list != (e.list != nil) || !list && !e.isString():
		return failure(wrongType)
	default:
		return number(int64(max(len(e.list), len(e.text))))
	}
}

func (k *keyspace) pttl(a []string) reply {
	switch e, ok := k.get(a[0]); {
	case !ok:
		return number(-2)
	case e.expires == 0:
		return number(-1)
	default:
		return number(e.expires - k.now.UnixMilli())
	}
}

func (k *keyspace) pexpiretime(a []string) reply {
	switch e, ok := k.get(a[0]); {
	case !ok:
		return number(-2)
	case e.expires == 0:
		return number(-1)
	default:
		return number(e.expires)
	}
}

func (k *keyspace) expire(a []string, at func(int64) int64) reply {
	n, err := strconv.ParseInt(a[1], 10, 64)
	if err != nil || len(a) > 2 {
		return failure(notNumber)
	}
	e, ok := k.get(a[0])
	if !ok {
		return number(0)
	}
	if e.expires = at(n); e.expires <= k.now.UnixMilli() {
		k.drop(a[0])
	} else {
		k.put(a[0], e)
	}
	return number(1)
}

func (k *keyspace) persist(a []string) reply {
	e, ok := k.get(a[0])
	if !ok || e.expires == 0 {
		return number(0)
	}
	e.expires = 0
	k.put(a[0], e)
	return number(1)
}
