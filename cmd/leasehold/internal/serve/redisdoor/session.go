package redisdoor

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// session is what a connection said of itself. Only the goroutine that reads its commands uses
// it.
type session struct {
	id      int64
	version int    // of the protocol
	name    string // CLIENT SETNAME
	library string // CLIENT SETINFO
	// token is what AUTH gave. It is looked up for each command, so that a token that was taken
	// out of the rights has none any more.
	token string
	// refusing is set from a MULTI, which was refused, to its EXEC: what is in between must not
	// be done, since the client takes it for part of the transaction.
	refusing bool
	quit     bool
	changes  int // of what the client calls itself
}

// version of Redis whose commands these are; clients compare it.
const emulated = "7.2.0"

// answer returns the reply to a command that is not about locks. login reports whether a token
// is one that the rights name, and needs is set if there are rights at all.
func (s *session) answer(words []string, known *scripts, needs bool, login func(token string) bool) (reply, bool) {
	args := words[1:]
	switch name := strings.ToUpper(words[0]); name {
	case "PING":
		if len(args) > 0 {
			return text(args[0]), true
		}
		return reply{kind: '+', text: "PONG"}, true
	case "ECHO":
		if len(args) != 1 {
			return failed("ERR wrong number of arguments for 'echo' command"), true
		}
		return text(args[0]), true
	case "QUIT":
		s.quit = true
		return ok, true
	case "RESET":
		*s = session{id: s.id, version: 2, changes: s.changes + 1}
		return reply{kind: '+', text: "RESET"}, true
	case "SELECT":
		if len(args) != 1 || args[0] != "0" {
			return failed("ERR DB index is out of range: " + what + ", all in database 0"), true
		}
		return ok, true
	case "AUTH":
		return s.auth(args, needs, login), true
	case "HELLO":
		return s.hello(args, needs, login), true
	case "CLIENT":
		return s.client(args), true
	case "SCRIPT":
		return scriptCommand(args, known), true
	case "INFO":
		return text("# Server\r\nredis_version:" + emulated + "\r\nredis_mode:standalone\r\nserver_name:leasehold\r\ntcp_port:0\r\n" +
			"# Persistence\r\nloading:0\r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Cluster\r\ncluster_enabled:0\r\n"), true
	case "COMMAND": // clients that look for the keys of a command know those of ours
		if len(args) > 0 && strings.EqualFold(args[0], "COUNT") {
			return number(int64(len(lockCommands))), true
		}
		return reply{kind: '*'}, true
	case "MULTI":
		s.refusing = true
		return failed(refusalOf(name)), true
	}
	return reply{}, false
}

// transaction returns the reply to a command between a MULTI and its EXEC.
func (s *session) transaction(words []string) reply {
	switch strings.ToUpper(words[0]) {
	case "EXEC":
		s.refusing = false
		return failed("EXECABORT Transaction discarded because of previous errors: " + what + ", and it has no transactions. Nothing was done")
	case "DISCARD":
		s.refusing = false
		return ok
	case "RESET", "QUIT":
		r, _ := s.answer(words, nil, false, nil)
		return r
	}
	return failed("ERR nothing was done: MULTI was refused before, and this server waits for its EXEC or DISCARD")
}

func (s *session) auth(args []string, needs bool, login func(string) bool) reply {
	switch {
	case len(args) != 1 && len(args) != 2:
		return failed("ERR wrong number of arguments for 'auth' command")
	case !needs:
		return failed("ERR AUTH <password> called without any password configured for the default user: this server was started without --rights, so leave the password out")
	case args[len(args)-1] == "" || !login(args[len(args)-1]): // a token names its client, so the name of the user says nothing
		return failed("WRONGPASS invalid username-password pair or user is disabled: the rights of this server name no client with this token")
	}
	s.token = strings.Clone(args[len(args)-1]) // without the rest of the command
	return ok
}

func (s *session) hello(args []string, needs bool, login func(string) bool) reply {
	version := s.version
	if len(args) > 0 {
		switch args[0] {
		case "2":
			version = 2
		case "3":
			version = 3
		default:
			return failed("NOPROTO unsupported protocol version")
		}
		for args = args[1:]; len(args) > 0; {
			option := strings.ToUpper(args[0])
			switch {
			case option == "AUTH" && len(args) >= 3:
				if r := s.auth(args[1:3], needs, login); r.kind == '-' {
					return r
				}
				args = args[3:]
			case option == "SETNAME" && len(args) >= 2:
				if r := s.setName(args[1]); r.kind == '-' {
					return r
				}
				args = args[2:]
			default:
				return failed("ERR Syntax error in HELLO option '" + store.Excerpt(option) + "'")
			}
		}
	}
	if needs && !login(s.token) {
		return noAuth
	}
	s.version = version
	return reply{kind: '%', list: []reply{
		text("server"), text("redis"), // clients insist
		text("version"), text(emulated),
		text("proto"), number(int64(version)),
		text("id"), number(s.id),
		text("mode"), text("standalone"),
		text("role"), text("master"),
		text("modules"), {kind: '*'},
	}}
}

var noAuth = failed("NOAUTH Authentication required: give the token of a client as the password (AUTH TOKEN, or redis://:TOKEN@HOST)")

const mostNamed = 100 // bytes of what a client calls itself

func (s *session) setName(name string) reply {
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) || len(name) > mostNamed {
		return failed("ERR Client names cannot contain spaces, newlines or special characters, and have at most 100 bytes")
	}
	s.name = strings.Clone(name)
	s.changes++
	return ok
}

func (s *session) client(args []string) reply {
	if len(args) == 0 {
		return failed("ERR wrong number of arguments for 'client' command")
	}
	sub := strings.ToUpper(args[0])
	switch {
	case sub == "ID" && len(args) == 1:
		return number(s.id)
	case sub == "SETNAME" && len(args) == 2:
		return s.setName(args[1])
	case sub == "GETNAME" && len(args) == 1:
		if s.name == "" {
			return nul
		}
		return text(s.name)
	case sub == "SETINFO" && len(args) == 3:
		if strings.EqualFold(args[1], "LIB-NAME") && len(args[2]) <= mostNamed {
			s.library = strings.Clone(args[2])
			s.changes++
		}
		return ok
	case (sub == "NO-EVICT" || sub == "NO-TOUCH") && len(args) == 2:
		return ok
	case sub == "TRACKING" || sub == "CACHING":
		return failed("ERR unknown subcommand '" + strings.ToLower(sub) + "': " + what + ", and it sends no invalidations: turn off client-side caching (DisableCache in rueidis)")
	}
	return failed("ERR unknown subcommand '" + store.Excerpt(strings.ToLower(args[0])) + "' of CLIENT: " + what)
}

func scriptCommand(args []string, known *scripts) reply {
	if len(args) >= 2 {
		switch strings.ToUpper(args[0]) {
		case "LOAD":
			if known.learn(args[1]) == nil {
				return failed(refusedScript)
			}
			return text(hashOf(args[1]))
		case "EXISTS":
			r := reply{kind: '*'}
			for _, hash := range args[1:] {
				is := none
				if known.byHash(hash) != nil {
					is = one
				}
				r.list = append(r.list, is)
			}
			return r
		}
	}
	return failed("ERR unknown subcommand of SCRIPT: " + what + ". It takes SCRIPT LOAD and SCRIPT EXISTS")
}

// purpose is what others see of the client in the description of a lease.
func (s *session) purpose() string {
	switch {
	case s.name != "" && s.library != "":
		return s.name + " (" + s.library + ")"
	case s.name != "":
		return s.name
	}
	return s.library
}
