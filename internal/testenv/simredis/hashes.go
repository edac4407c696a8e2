package simredis

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
)

// hashes has the commands on hashes and on sorted sets.
type hashes struct{ *keyspace }

// fields returns a copy of the hash of a key, which is empty if there is no key.
func (h hashes) fields(key string) (e entry, ok bool) {
	if e, ok = h.get(key); ok && e.hash == nil {
		return e, false
	}
	if e.hash = maps.Clone(e.hash); e.hash == nil {
		e.hash = map[string]string{}
	}
	return e, true
}

func (h hashes) hset(a []string) reply {
	e, ok := h.fields(a[0])
	switch {
	case !ok:
		return failure(wrongType)
	case len(a)%2 == 0:
		return failure("ERR wrong number of arguments for 'hset' command")
	}
	before := len(e.hash)
	for pair := range slices.Chunk(a[1:], 2) {
		e.hash[pair[0]] = pair[1]
	}
	h.put(a[0], e)
	return number(int64(len(e.hash) - before))
}

func (h hashes) hdel(a []string) reply {
	e, ok := h.fields(a[0])
	if !ok {
		return failure(wrongType)
	}
	before := len(e.hash)
	for _, field := range a[1:] {
		delete(e.hash, field)
	}
	if len(e.hash) == 0 {
		h.drop(a[0])
	} else if len(e.hash) < before {
		h.put(a[0], e)
	}
	return number(int64(before - len(e.hash)))
}

func (h hashes) hmget(a []string) reply {
	e, ok := h.fields(a[0])
	if !ok {
		return failure(wrongType)
	}
	r := reply{kind: '*'}
	for _, field := range a[1:] {
		if text, ok := e.hash[field]; ok {
			r.list = append(r.list, bulk(text))
		} else {
			r.list = append(r.list, nullReply)
		}
	}
	return r
}

func (h hashes) hgetall(a []string) reply {
	e, ok := h.fields(a[0])
	if !ok {
		return failure(wrongType)
	}
	var all []string
	for _, field := range slices.Sorted(maps.Keys(e.hash)) {
		all = append(all, field, e.hash[field])
	}
	return bulks(all)
}

// set returns a copy of the sorted set of a key, which is empty if there is no key.
func (h hashes) set(key string) (e entry, ok bool) {
	if e, ok = h.get(key); ok && e.scores == nil {
		return e, false
	}
	if e.scores = maps.Clone(e.scores); e.scores == nil {
		e.scores = map[string]float64{}
	}
	return e, true
}

func (h hashes) zadd(a []string) reply {
	e, ok := h.set(a[0])
	switch {
	case !ok:
		return failure(wrongType)
	case len(a)%2 == 0:
		return failure("ERR syntax error")
	}
	before := len(e.scores)
	for pair := range slices.Chunk(a[1:], 2) {
		score, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return failure("ERR value is not a valid float")
		}
		e.scores[pair[1]] = score
	}
	h.put(a[0], e)
	return number(int64(len(e.scores) - before))
}

func (h hashes) zrem(a []string) reply {
	e, ok := h.set(a[0])
	if !ok {
		return failure(wrongType)
	}
	before := len(e.scores)
	for _, member := range a[1:] {
		delete(e.scores, member)
	}
	if len(e.scores) == 0 {
		h.drop(a[0])
	} else if len(e.scores) < before {
		h.put(a[0], e)
	}
	return number(int64(before - len(e.scores)))
}

func (h hashes) zscore(a []string) reply {
	e, ok := h.set(a[0])
	if !ok {
		return failure(wrongType)
	}
	if score, ok := e.scores[a[1]]; ok {
		return bulk(strconv.FormatFloat(score, 'f', -1, 64))
	}
	return nullReply
}

// zrange is ZRANGE by index.
func (h hashes) zrange(a []string) reply {
	e, ok := h.set(a[0])
	from, err1 := strconv.Atoi(a[1])
	to, err2 := strconv.Atoi(a[2])
	switch {
	case err1 != nil || err2 != nil:
		return failure(notNumber)
	case !ok:
		return failure(wrongType)
	}
	members := slices.SortedFunc(maps.Keys(e.scores), func(x, y string) int {
		return cmp.Or(cmp.Compare(e.scores[x], e.scores[y]), cmp.Compare(x, y))
	})
	if from < 0 {
		from = max(0, from+len(members))
	}
	if to < 0 {
		to += len(members)
	}
	var all []string
	for i := from; i <= min(to, len(members)-1); i++ {
		if all = append(all, members[i]); len(a) > 3 {
			all = append(all, strconv.FormatFloat(e.scores[members[i]], 'f', -1, 64))
		}
	}
	return bulks(all)
}
