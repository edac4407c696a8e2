package simredis

import (
	"slices"
	"strconv"
	"strings"
)

// lists has the commands on lists.
type lists struct{ *keyspace }

// items returns the list of a key, or nil if there is no key.
func (l lists) items(key string) (entry, bool) {
	e, ok := l.get(key)
	return e, !ok || e.list != nil
}

// store writes a list. A list without elements removes the key.
func (l lists) store(key string, e entry, list []string) {
	if len(list) == 0 {
		l.drop(key)
		return
	}
	e.list = list
	l.put(key, e)
}

func (l lists) push(a []string, left bool) reply {
	e, ok := l.items(a[0])
	if !ok {
		return failure(wrongType)
	}
	list := slices.Clone(e.list)
	for _, x := range a[1:] {
		if left {
			list = slices.Insert(list, 0, x)
		} else {
			list = append(list, x)
		}
	}
	l.store(a[0], e, list)
	return number(int64(len(list)))
}

func (l lists) lpop(a []string) reply {
	e, ok := l.items(a[0])
	switch {
	case !ok:
		return failure(wrongType)
	case len(e.list) == 0:
		return nullReply
	}
	l.store(a[0], e, slices.Clone(e.list[1:]))
	return bulk(e.list[0])
}

func (l lists) lindex(a []string) reply {
	e, ok := l.items(a[0])
	i, err := strconv.Atoi(a[1])
	switch {
	case !ok:
		return failure(wrongType)
	case err != nil:
		return failure(notNumber)
	}
	if i < 0 {
		i += len(e.list)
	}
	if i < 0 || i >= len(e.list) {
		return nullReply
	}
	return bulk(e.list[i])
}

func (l lists) lrange(a []string) reply {
	e, ok := l.items(a[0])
	from, err1 := strconv.Atoi(a[1])
	to, err2 := strconv.Atoi(a[2])
	switch {
	case err1 != nil || err2 != nil:
		return failure(notNumber)
	case !ok:
		return failure(wrongType)
	}
	n := len(e.list)
	if from < 0 {
		from = max(0, from+n)
	}
	if to < 0 {
		to += n
	}
	if to = min(to, n-1); from > to {
		return reply{kind: '*'}
	}
	return bulks(e.list[from : to+1])
}

func (l lists) lrem(a []string) reply {
	e, ok := l.items(a[0])
	most, err := strconv.Atoi(a[1])
	switch {
	case err != nil:
		return failure(notNumber)
	case !ok:
		return failure(wrongType)
	case most < 0:
		return failure("ERR simredis removes from the head only")
	}
	n := 0
	list := slices.DeleteFunc(slices.Clone(e.list), func(x string) bool {
		if x != a[2] || most > 0 && n == most {
			return false
		}
		n++
		return true
	})
	if n > 0 {
		l.store(a[0], e, list)
	}
	return number(int64(n))
}

func (l lists) linsert(a []string) reply {
	e, ok := l.items(a[0])
	where := strings.ToUpper(a[1])
	switch {
	case where != "BEFORE" && where != "AFTER":
		return failure(syntax)
	case !ok:
		return failure(wrongType)
	case len(e.list) == 0:
		return number(0)
	}
	i := slices.Index(e.list, a[2])
	if i < 0 {
		return number(-1)
	}
	if where == "AFTER" {
		i++
	}
	l.store(a[0], e, slices.Insert(slices.Clone(e.list), i, a[3]))
	return number(int64(len(e.list) + 1))
}
