package simredis

import (
	"strconv"
	"strings"
)

// command is a command that scripts may call.
type command struct {
	arity  int  // the least number of words, with the name
	writes bool // a replica refuses it
	grows  bool // it may need memory
	// free is true if the command touches no data, so that it works while data is loaded.
	free bool
	do   func(s *Server, args []string) reply
}

// perform executes a command of a connection or of a script. The time is that of tick.
func (s *Server) perform(words []string, e *engine) reply {
	if len(words) == 0 {
		return failure("ERR Please specify at least one argument for this redis.call call")
	}
	c, ok := commands[strings.ToUpper(words[0])]
	switch {
	case !ok && e != nil:
		return failure("ERR Unknown Redis command called from script")
	case !ok:
		return failure("ERR unknown command '" + words[0] + "', with args beginning with: ")
	case len(words) < c.arity:
		return failure("ERR wrong number of arguments for '" + strings.ToLower(words[0]) + "' command")
	case s.Trouble == "LOADING" && !c.free:
		return failure("LOADING Redis is loading the dataset in memory")
	case c.writes && s.replica:
		return failure("READONLY You can't write against a read only replica.")
	case c.writes && s.Trouble == "MISCONF":
		return failure("MISCONF Errors writing to the AOF file: No space left on device")
	case c.grows && s.Trouble == "OOM" && (e == nil || !e.wrote):
		return failure("OOM command not allowed when used memory > 'maxmemory'.")
	}
	if e != nil && c.writes {
		e.wrote = true
	}
	return c.do(s, words[1:])
}

var commands map[string]command

// onKeys, onTexts and onLists return functions that execute commands on data.
func onKeys(do func(*keyspace, []string) reply) func(*Server, []string) reply {
	return func(s *Server, a []string) reply { return do(&s.keys, a) }
}

func onTexts(do func(texts, []string) reply) func(*Server, []string) reply {
	return func(s *Server, a []string) reply { return do(texts{&s.keys}, a) }
}

func onLists(do func(lists, []string) reply) func(*Server, []string) reply {
	return func(s *Server, a []string) reply { return do(lists{&s.keys}, a) }
}

func onHashes(do func(hashes, []string) reply) func(*Server, []string) reply {
	return func(s *Server, a []string) reply { return do(hashes{&s.keys}, a) }
}

// onConns returns a function that executes a command about connections.
func onConns(do func(connections, []string) reply) func(*Server, []string) reply {
	return func(s *Server, a []string) reply { return do(s.conns, a) }
}

func init() {
	commands = map[string]command{
		"PING":    {arity: 1, free: true, do: func(*Server, []string) reply { return reply{kind: '+', text: "PONG"} }},
		"TIME":    {arity: 1, free: true, do: onKeys((*keyspace).time)},
		"INFO":    {arity: 1, free: true, do: (*Server).info},
		"CONFIG":  {arity: 3, free: true, do: (*Server).config},
		"ROLE":    {arity: 1, free: true, do: (*Server).role},
		"PUBLISH": {arity: 3, free: true, do: onConns(connections.publish)}, "SPUBLISH": {arity: 3, free: true, do: onConns(connections.publish)},
		"GET":  {arity: 2, do: func(s *Server, a []string) reply { return texts{&s.keys}.text(a[0]) }},
		"MGET": {arity: 2, do: onTexts(texts.mget)},
		"SET":  {arity: 3, writes: true, grows: true, do: onTexts(texts.set)},
		"INCR": {arity: 2, writes: true, grows: true, do: onTexts(texts.incr)},
		"DEL":  {arity: 2, writes: true, do: onKeys((*keyspace).del)}, "UNLINK": {arity: 2, writes: true, do: onKeys((*keyspace).del)},
		"EXISTS": {arity: 2, do: onKeys((*keyspace).exists)},
		"KEYS":   {arity: 2, do: onKeys((*keyspace).matching)},
		"SCAN":   {arity: 2, do: onKeys((*keyspace).scan)},
		"TYPE":   {arity: 2, do: onKeys((*keyspace).kind)},
		"STRLEN": {arity: 2, do: func(s *Server, a []string) reply { return s.keys.length(a[0], false) }},
		"PTTL":   {arity: 2, do: onKeys((*keyspace).pttl)},
		"PEXPIRE": {arity: 3, writes: true, do: func(s *Server, a []string) reply {
			return s.keys.expire(a, func(n int64) int64 { return s.keys.now.UnixMilli() + n })
		}},
		"PEXPIREAT": {arity: 3, writes: true, do: func(s *Server, a []string) reply {
			return s.keys.expire(a, func(n int64) int64 { return n })
		}},
		"PEXPIRETIME": {arity: 2, do: onKeys((*keyspace).pexpiretime)},
		"PERSIST":     {arity: 2, writes: true, do: onKeys((*keyspace).persist)},
		"LLEN":        {arity: 2, do: func(s *Server, a []string) reply { return s.keys.length(a[0], true) }},
		"LINDEX":      {arity: 3, do: onLists(lists.lindex)},
		"LRANGE":      {arity: 4, do: onLists(lists.lrange)},
		"LPOP":        {arity: 2, writes: true, do: onLists(lists.lpop)},
		"RPUSH":       {arity: 3, writes: true, grows: true, do: func(s *Server, a []string) reply { return lists{&s.keys}.push(a, false) }},
		"LPUSH":       {arity: 3, writes: true, grows: true, do: func(s *Server, a []string) reply { return lists{&s.keys}.push(a, true) }},
		"LREM":        {arity: 4, writes: true, do: onLists(lists.lrem)},
		"LINSERT":     {arity: 5, writes: true, grows: true, do: onLists(lists.linsert)},
		"HSET":        {arity: 4, writes: true, grows: true, do: onHashes(hashes.hset)},
		"HDEL":        {arity: 3, writes: true, do: onHashes(hashes.hdel)},
		"HMGET":       {arity: 3, do: onHashes(hashes.hmget)},
		"HGETALL":     {arity: 2, do: onHashes(hashes.hgetall)},
		"ZADD":        {arity: 4, writes: true, grows: true, do: onHashes(hashes.zadd)},
		"ZREM":        {arity: 3, writes: true, do: onHashes(hashes.zrem)},
		"ZSCORE":      {arity: 3, do: onHashes(hashes.zscore)},
		"ZRANGE":      {arity: 4, do: onHashes(hashes.zrange)},
		"FLUSHALL":    {arity: 1, writes: true, do: (*Server).flushall}, "FLUSHDB": {arity: 1, writes: true, do: (*Server).flushall},
	}
}

func (k *keyspace) time([]string) reply {
	us := k.now.UnixMicro()
	return bulks([]string{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)})
}

func (s *Server) flushall([]string) reply {
	for k := range s.keys.data {
		s.keys.note(k)
	}
	s.keys.data = map[string]entry{}
	s.conns.flushed()
	return okReply
}
