package simredis

import (
	"slices"
	"strconv"
	"strings"
)

// Conn is a client's connection to a server.
type Conn struct {
	s        *Server
	push     func([]byte)
	version  int
	channels []string
	tracks   bool     // the server pushes that keys have changed
	prefixes []string // of these keys; without any, of keys that it has read
	read     map[string]bool
}

// Connect opens a connection. push gets the server's push messages.
func (s *Server) Connect(push func([]byte)) *Conn {
	c := &Conn{s: s, push: push, version: 2, read: map[string]bool{}}
	s.conns = append(s.conns, c)
	return c
}

// Close ends the connection.
func (c *Conn) Close() {
	c.s.conns = slices.DeleteFunc(c.s.conns, func(o *Conn) bool { return o == c })
}

// Do executes a command, as one atomic step, and returns the encoded reply.
func (c *Conn) Do(words []string) []byte {
	c.s.tick()
	return c.answer(words).encode(nil, c.version)
}

func (c *Conn) answer(words []string) reply {
	args := words[1:]
	switch name := strings.ToUpper(words[0]); name {
	case "HELLO":
		return c.hello(args)
	case "AUTH", "SELECT", "READONLY", "ASKING":
		return okReply
	case "CLIENT":
		return c.client(args)
	case "SUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "SUNSUBSCRIBE":
		return c.subscribe(strings.ToLower(name), args)
	case "SCRIPT":
		return c.s.script(args)
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO":
		return c.s.eval(strings.HasPrefix(name, "EVALSHA"), args)
	default:
		r := c.s.perform(words, nil)
		if c.tracks && len(c.prefixes) == 0 && (name == "GET" || name == "MGET") {
			for _, k := range args {
				c.read[k] = true
			}
		}
		return r
	}
}

func (c *Conn) hello(args []string) reply {
	if len(args) > 0 {
		v, err := strconv.Atoi(args[0])
		if err != nil || v < 2 || v > 3 {
			return failure("NOPROTO unsupported protocol version")
		}
		c.version = v
	}
	return reply{kind: '%', list: []reply{
		bulk("server"), bulk("redis"), bulk("version"), bulk("7.0.15"), bulk("proto"), number(int64(c.version)),
		bulk("id"), number(int64(1 + slices.Index(c.s.conns, c))), bulk("mode"), bulk("standalone"), bulk("role"), bulk(map[bool]string{false: "master", true: "replica"}[c.s.replica]),
		bulk("modules"), array(),
	}}
}

func (c *Conn) client(args []string) reply {
	if len(args) == 0 {
		return failure("ERR wrong number of arguments for 'client' command")
	}
	switch strings.ToUpper(args[0]) {
	case "SETNAME", "SETINFO", "NO-EVICT", "NO-TOUCH":
		return okReply
	case "ID":
		return number(int64(1 + slices.Index(c.s.conns, c)))
	case "TRACKING":
		return c.track(args[1:])
	}
	return failure("ERR unknown subcommand '" + args[0] + "'. Try CLIENT HELP.")
}

func (c *Conn) track(args []string) reply {
	if len(args) == 0 {
		return failure(syntax)
	}
	c.tracks, c.prefixes = strings.EqualFold(args[0], "ON"), nil
	for i := 1; i < len(args); i++ {
		switch strings.ToUpper(args[i]) {
		case "BCAST":
			c.prefixes = append(c.prefixes, "")
		case "PREFIX":
			if i++; i == len(args) {
				return failure(syntax)
			}
			c.prefixes = append(slices.DeleteFunc(c.prefixes, func(p string) bool { return p == "" }), args[i])
		case "NOLOOP":
		default:
			return failure(syntax)
		}
	}
	return okReply
}

func (c *Conn) say(words ...reply) {
	c.push(reply{kind: '>', list: words}.encode(nil, c.version))
}

func (c *Conn) subscribe(name string, channels []string) reply {
	var last reply
	for i, ch := range channels {
		c.channels = slices.DeleteFunc(c.channels, func(have string) bool { return have == ch })
		if !strings.Contains(name, "un") {
			c.channels = append(c.channels, ch)
		}
		last = reply{kind: '>', list: []reply{bulk(name), bulk(ch), number(int64(len(c.channels)))}}
		if i < len(channels)-1 {
			c.say(last.list...)
		}
	}
	return last
}

func (s *Server) script(args []string) reply {
	switch {
	case len(args) == 2 && strings.EqualFold(args[0], "LOAD"):
		sha := hash(args[1])
		if _, err := compile(sha, args[1]); err != nil {
			return failure("ERR Error compiling script: " + err.Error())
		}
		s.scripts[sha] = args[1]
		return bulk(sha)
	case len(args) >= 1 && strings.EqualFold(args[0], "FLUSH"):
		clear(s.scripts)
		return okReply
	}
	return failure("ERR unknown subcommand")
}

func (s *Server) eval(byHash bool, args []string) reply {
	if len(args) < 2 {
		return failure("ERR wrong number of arguments for 'eval' command")
	}
	var sha string
	if byHash {
		sha = strings.ToLower(args[0])
	} else {
		sha = hash(args[0])
		s.scripts[sha] = args[0]
	}
	n, err := strconv.Atoi(args[1])
	switch _, known := s.scripts[sha]; {
	case err != nil:
		return failure(notNumber)
	case n > len(args)-2:
		return failure("ERR Number of keys can't be greater than number of args")
	case n < 0:
		return failure("ERR Number of keys can't be negative")
	case !known:
		return failure("NOSCRIPT No matching script. Please use EVAL.")
	case s.Trouble == "LOADING":
		return failure("LOADING Redis is loading the dataset in memory")
	}
	return s.run(sha, args[2:2+n], args[2+n:])
}
