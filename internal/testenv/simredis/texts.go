package simredis

import (
	"math"
	"strconv"
	"strings"
)

// texts has the commands on strings.
type texts struct{ *keyspace }

func (t texts) text(key string) reply {
	switch e, ok := t.get(key); {
	case !ok:
		return nullReply
	case ok && !e.isString():
		return failure(wrongType)
	default:
		return bulk(e.text)
	}
}

func (t texts) mget(keys []string) reply {
	r := reply{kind: '*'}
	for _, k := range keys {
		v := t.text(k)
		if v.kind == '-' {
			v = nullReply
		}
		r.list = append(r.list, v)
	}
	return r
}

func (t texts) set(a []string) reply {
	was, existed := t.get(a[0])
	e := entry{text: a[1]}
	for i := 2; i < len(a); i++ {
		switch option := strings.ToUpper(a[i]); {
		case option == "NX" && existed, option == "XX" && !existed:
			return nullReply
		case option == "NX", option == "XX":
		case option == "KEEPTTL":
			e.expires = was.expires
		case (option == "PX" || option == "EX" || option == "PXAT") && i+1 < len(a):
			i++
			n, err := strconv.ParseInt(a[i], 10, 64)
			if err != nil {
				return failure(notNumber)
			}
			if option == "EX" {
				n *= 1000
			}
			if n <= 0 {
				return failure("ERR invalid expire time in 'set' command")
			}
			if e.expires = n; option != "PXAT" {
				e.expires += t.now.UnixMilli()
			}
		default:
			return failure(syntax)
		}
	}
	t.put(a[0], e)
	return okReply
}

func (t texts) incr(a []string) reply {
	e, ok := t.get(a[0])
	n, err := strconv.ParseInt(e.text, 10, 64)
	switch {
	case ok && !e.isString():
		return failure(wrongType)
	case ok && (err != nil || n == math.MaxInt64):
		return failure(notNumber)
	}
	e.text = strconv.FormatInt(n+1, 10)
	t.put(a[0], e)
	return number(n + 1)
}
