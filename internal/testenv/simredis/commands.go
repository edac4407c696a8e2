package simredis

import (
	"math"
	"strconv"
	"strings"
)

// command is one that scripts may call.
type command struct {
	arity  int  // words at least, with the name
	writes bool // a replica refuses it
	grows  bool // it may need memory
	// free: it touches no data, so it is answered while the data is loaded.
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

func init() {
	commands = map[string]command{
		"PING":    {arity: 1, free: true, do: func(*Server, []string) reply { return reply{kind: '+', text: "PONG"} }},
		"TIME":    {arity: 1, free: true, do: (*Server).time},
		"INFO":    {arity: 1, free: true, do: (*Server).info},
		"CONFIG":  {arity: 3, free: true, do: (*Server).config},
		"ROLE":    {arity: 1, free: true, do: (*Server).role},
		"PUBLISH": {arity: 3, free: true, do: (*Server).publish}, "SPUBLISH": {arity: 3, free: true, do: (*Server).publish},
		"GET":  {arity: 2, do: func(s *Server, a []string) reply { return s.text(a[0]) }},
		"MGET": {arity: 2, do: (*Server).mget},
		"SET":  {arity: 3, writes: true, grows: true, do: (*Server).set},
		"INCR": {arity: 2, writes: true, grows: true, do: (*Server).incr},
		"DEL":  {arity: 2, writes: true, do: (*Server).del}, "UNLINK": {arity: 2, writes: true, do: (*Server).del},
		"EXISTS": {arity: 2, do: (*Server).exists},
		"KEYS":   {arity: 2, do: (*Server).matching},
		"SCAN":   {arity: 2, do: (*Server).scan},
		"TYPE":   {arity: 2, do: (*Server).kind},
		"STRLEN": {arity: 2, do: func(s *Server, a []string) reply { return s.length(a[0], false) }},
		"PTTL":   {arity: 2, do: (*Server).pttl},
		"PEXPIRE": {arity: 3, writes: true, do: func(s *Server, a []string) reply {
			return s.expire(a, func(n int64) int64 { return s.keys.now.UnixMilli() + n })
		}},
		"PEXPIREAT": {arity: 3, writes: true, do: func(s *Server, a []string) reply {
			return s.expire(a, func(n int64) int64 { return n })
		}},
		"PEXPIRETIME": {arity: 2, do: (*Server).pexpiretime},
		"PERSIST":     {arity: 2, writes: true, do: (*Server).persist},
		"LLEN":        {arity: 2, do: func(s *Server, a []string) reply { return s.length(a[0], true) }},
		"LINDEX":      {arity: 3, do: (*Server).lindex},
		"LRANGE":      {arity: 4, do: (*Server).lrange},
		"LPOP":        {arity: 2, writes: true, do: (*Server).lpop},
		"RPUSH":       {arity: 3, writes: true, grows: true, do: func(s *Server, a []string) reply { return s.push(a, false) }},
		"LPUSH":       {arity: 3, writes: true, grows: true, do: func(s *Server, a []string) reply { return s.push(a, true) }},
		"LREM":        {arity: 4, writes: true, do: (*Server).lrem},
		"LINSERT":     {arity: 5, writes: true, grows: true, do: (*Server).linsert},
		"FLUSHALL":    {arity: 1, writes: true, do: (*Server).flushall}, "FLUSHDB": {arity: 1, writes: true, do: (*Server).flushall},
	}
}

func (s *Server) time([]string) reply {
	us := s.keys.now.UnixMicro()
	return bulks([]string{strconv.FormatInt(us/1e6, 10), strconv.FormatInt(us%1e6, 10)})
}

func (s *Server) text(key string) reply {
	switch e, ok := s.keys.get(key); {
	case !ok:
		return nullReply
	case e.list != nil:
		return failure(wrongType)
	default:
		return bulk(e.text)
	}
}

func (s *Server) mget(keys []string) reply {
	r := reply{kind: '*'}
	for _, k := range keys {
		v := s.text(k)
		if v.kind == '-' {
			v = nullReply
		}
		r.list = append(r.list, v)
	}
	return r
}

func (s *Server) set(a []string) reply {
	was, existed := s.keys.get(a[0])
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
				e.expires += s.keys.now.UnixMilli()
			}
		default:
			return failure(syntax)
		}
	}
	s.keys.put(a[0], e)
	return okReply
}

func (s *Server) incr(a []string) reply {
	e, ok := s.keys.get(a[0])
	n, err := strconv.ParseInt(e.text, 10, 64)
	switch {
	case e.list != nil:
		return failure(wrongType)
	case ok && (err != nil || n == math.MaxInt64):
		return failure(notNumber)
	}
	e.text = strconv.FormatInt(n+1, 10)
	s.keys.put(a[0], e)
	return number(n + 1)
}

func (s *Server) del(keys []string) reply {
	n := int64(0)
	for _, k := range keys {
		if s.keys.drop(k) {
			n++
		}
	}
	return number(n)
}

func (s *Server) exists(keys []string) reply {
	n := int64(0)
	for _, k := range keys {
		if _, ok := s.keys.get(k); ok {
			n++
		}
	}
	return number(n)
}

func (s *Server) kind(a []string) reply {
	switch e, ok := s.keys.get(a[0]); {
	case !ok:
		return reply{kind: '+', text: "none"}
	case e.list != nil:
		return reply{kind: '+', text: "list"}
	}
	return reply{kind: '+', text: "string"}
}

func (s *Server) length(key string, list bool) reply {
	switch e, ok := s.keys.get(key); {
	case !ok:
		return number(0)
	case list != (e.list != nil):
		return failure(wrongType)
	default:
		return number(int64(max(len(e.list), len(e.text))))
	}
}

func (s *Server) pttl(a []string) reply {
	switch e, ok := s.keys.get(a[0]); {
	case !ok:
		return number(-2)
	case e.expires == 0:
		return number(-1)
	default:
		return number(e.expires - s.keys.now.UnixMilli())
	}
}

func (s *Server) pexpiretime(a []string) reply {
	switch e, ok := s.keys.get(a[0]); {
	case !ok:
		return number(-2)
	case e.expires == 0:
		return number(-1)
	default:
		return number(e.expires)
	}
}

func (s *Server) expire(a []string, at func(int64) int64) reply {
	n, err := strconv.ParseInt(a[1], 10, 64)
	if err != nil || len(a) > 2 {
		return failure(notNumber)
	}
	e, ok := s.keys.get(a[0])
	if !ok {
		return number(0)
	}
	if e.expires = at(n); e.expires <= s.keys.now.UnixMilli() {
		s.keys.drop(a[0])
	} else {
		s.keys.put(a[0], e)
	}
	return number(1)
}

func (s *Server) persist(a []string) reply {
	e, ok := s.keys.get(a[0])
	if !ok || e.expires == 0 {
		return number(0)
	}
	e.expires = 0
	s.keys.put(a[0], e)
	return number(1)
}

func (s *Server) flushall([]string) reply {
	for k := range s.keys.data {
		s.keys.note(k)
	}
	s.keys.data = map[string]entry{}
	s.flushed()
	return okReply
}

func (s *Server) matching(a []string) reply { return bulks(s.match(a[0])) }

// match are the names of keys that match a pattern.
func (s *Server) match(pattern string) (names []string) {
	for _, k := range s.Keys() {
		if glob(pattern, k) {
			names = append(names, k)
		}
	}
	return names
}

// glob says whether a pattern matches a name, byte by byte. It knows no classes.
func glob(pattern, name string) bool {
	for pattern != "" {
		c := pattern[0]
		pattern = pattern[1:]
		switch {
		case c == '*':
			for i := range len(name) + 1 {
				if glob(pattern, name[i:]) {
					return true
				}
			}
			return false
		case name == "":
			return false
		case c == '?':
			name = name[1:]
			continue
		case c == '\\' && pattern != "":
			c, pattern = pattern[0], pattern[1:]
		}
		if name[0] != c {
			return false
		}
		name = name[1:]
	}
	return name == ""
}

// scan returns all keys at once.
func (s *Server) scan(a []string) reply {
	pattern := "*"
	for i := 1; i+1 < len(a); i++ {
		if strings.EqualFold(a[i], "MATCH") {
			pattern = a[i+1]
		}
	}
	return array(bulk("0"), bulks(s.match(pattern)))
}
