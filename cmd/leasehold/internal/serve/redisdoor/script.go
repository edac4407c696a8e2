package redisdoor

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A script is recognised by its meaning as far as its words show it: comments, white space, the
// kind of quotes, the case of commands and the names of local variables do not matter. Nothing
// is ever executed.

// script is what a known script does.
type script struct {
	plan plan // without name, value and times
	args int  // how many there are
	ttl  int  // the number of the argument that is the TTL in milliseconds; 0: none
	at   bool // it is a time instead
	unit time.Duration
	// hashes are the hashes of the texts that libraries send. A server that was just started, or
	// stands beside another one, knows them without a text.
	hashes string
	// fill completes the plan from the arguments, if that is more than the value and the TTL.
	fill func(p *plan, args []string) (wrong string)
}

// Plans of scripts.
var (
	one       = number(1)
	none      = number(0)
	compareTo = plan{verb: release, done: one, free: none, other: none}
	extendOwn = plan{verb: extend, done: one, free: none, other: none}
	takeFree  = plan{verb: acquire, prefix: -1, done: ok, free: nul, other: nul}
)

// allMine begins the scripts of redislock from 0.10 that compare the values of all keys.
const allMine = `local values=redis.call("MGET",unpack(KEYS)) for i,_ in ipairs(KEYS) do if values[i]~=ARGV[1] then return false end end `

// prefixLength reads the second argument of redislock's script that takes a lock.
func prefixLength(p *plan, args []string) string {
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 0 {
		return "ERR the second argument is the length of the token"
	}
	p.prefix = n
	return ""
}

// library are the scripts that lock clients send, in their shortest form.
var library = map[string]*script{
	// Many: go-redis' redislock, ShedLock, RedLock.net, Laravel, the documentation of Redis.
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) else return 0 end`:                                                                                   {plan: compareTo, hashes: "cf0e94b2e9ffc7e04395cf88f7583fc309985910 18b2a577dbe847b16bebde190d69a1613d68e60e", args: 1},
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("UNLINK",KEYS[1]) else return 0 end`:                                                                                {plan: compareTo, args: 1},
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("DEL",KEYS[1]) end return 0`:                                                                                        {plan: compareTo, hashes: "9eb62214c9af87ae5f9a9f12bb4520281c0d2ae1", args: 1}, // rueidislock
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) else return 0 end`:                                                                       {plan: extendOwn, hashes: "a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf d75bb8b5bd13532ddedd17762e772346e39b321e", args: 2, ttl: 2},
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("EXPIRE",KEYS[1],ARGV[2]) else return 0 end`:                                                                        {plan: extendOwn, args: 2, ttl: 2, unit: time.Second},
	`if redis.call("GET",KEYS[1])==ARGV[1] then if tonumber(ARGV[2])>0 then return redis.call("EXPIRE",KEYS[1],ARGV[2]) end redis.call("PERSIST",KEYS[1]) return 1 else return 0 end`: {plan: extendOwn, args: 2, ttl: 2, unit: time.Second}, // Laravel, from 13
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("PTTL",KEYS[1]) else return -3 end`:                                                                                 {plan: plan{verb: compare, free: number(-3), other: number(-3)}, hashes: "6484da7d58920897fdc22b7f9afd1a3d47524ea8", args: 1},
	`if redis.call("GET",KEYS[1])==ARGV[1] then local left=redis.call("PTTL",KEYS[1]) return (left>0) and left or 0 else return 0 end`:                                                {plan: plan{verb: compare, free: none, other: none}, args: 1}, // pottery
	`return redis.call("SET",KEYS[1],ARGV[1],"NX","PX",ARGV[2])`:                                                                                                                      {plan: takeFree, args: 2, ttl: 2},
	`return redis.call("SET",KEYS[1],ARGV[1],"PX",ARGV[2],"NX")`:                                                                                                                      {plan: takeFree, args: 2, ttl: 2},
	`local r=redis.call("SET",KEYS[1],ARGV[1],"NX","PX",ARGV[2]) redis.call("GET",KEYS[1]) return r`:                                                                                  {plan: takeFree, hashes: "fa3d1aaa7e4145457755016a3d5daf72fa7a11bf", args: 2, ttl: 2}, // rueidislock
	`local r=redis.call("SET",KEYS[1],ARGV[1],"NX","PXAT",ARGV[2]) redis.call("GET",KEYS[1]) return r`:                                                                                {plan: takeFree, hashes: "3875d208d9e377969d2022550302cc83ad17b584", args: 2, ttl: 2, at: true},
	`if redis.call("GET",KEYS[1])==ARGV[1] then local r=redis.call("PEXPIREAT",KEYS[1],ARGV[2]) redis.call("GET",KEYS[1]) return r end return 0`:                                      {plan: extendOwn, hashes: "852ba6ec6104340ced36643283c856d4698569e4", args: 2, ttl: 2, at: true},

	// redsync
	`local val=redis.call("GET",KEYS[1]) if val==ARGV[1] then return redis.call("DEL",KEYS[1]) elseif val==false then return -1 else return 0 end`: {
		plan: plan{verb: release, done: one, free: number(-1), other: none}, hashes: "e950836ed1e694540c503ef9972b8de518044d3b", args: 1,
	},
	`if redis.call("GET",KEYS[1])==ARGV[1] then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) elseif redis.call("SET",KEYS[1],ARGV[1],"PX",ARGV[2],"NX") then return 1 else return 0 end`: {
		plan: plan{verb: extend, create: true, prefix: -1, done: one, free: none, other: none}, hashes: "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", args: 2, ttl: 2,
	},

	// RedLock.net
	`local v=redis.call("GET",KEYS[1]) if (v==false) then return redis.call("SET",KEYS[1],ARGV[1],"PX",ARGV[2]) and 1 or 0 elseif (v==ARGV[1]) then return redis.call("PEXPIRE",KEYS[1],ARGV[2]) else return -1 end`: {
		plan: plan{verb: extend, create: true, prefix: -1, done: one, free: none, other: number(-1)}, hashes: "9f614a785a5f9ae8c6396c6b4bf94d2087342603", args: 2, ttl: 2,
	},

	// redislock before 0.10: the second argument is how long the part of the value is that makes the holder.
	`if redis.call("SET",KEYS[1],ARGV[1],"NX","PX",ARGV[3]) then return redis.status_reply("OK") end local offset=tonumber(ARGV[2]) if redis.call("GETRANGE",KEYS[1],0,offset-1)==string.sub(ARGV[1],1,offset) then return redis.call("SET",KEYS[1],ARGV[1],"PX",ARGV[3]) end`: {
		plan: takeFree, hashes: "80a1b5f2cfccec3b7119ba7721d2127682b691a7", args: 3, ttl: 3, fill: prefixLength,
	},

	// redislock from 0.10, with one key
	`local function touch(ttl) for _,key in ipairs(KEYS) do redis.call("PEXPIRE",key,ttl) end end
	local function mine() local offset=tonumber(ARGV[2]) for _,key in ipairs(KEYS) do if redis.call("GETRANGE",key,0,offset-1)~=string.sub(ARGV[1],1,offset) then return false end end return true end
	local set={} for _,key in ipairs(KEYS) do table.insert(set,key) table.insert(set,ARGV[1]) end
	if redis.call("MSETNX",unpack(set))~=1 then if mine()==false then return false end redis.call("MSET",unpack(set)) end
	touch(ARGV[3]) return redis.status_reply("OK")`: {plan: takeFree, hashes: "eb0c00d98f6f33b4262419a509002884540f30be", args: 3, ttl: 3, fill: prefixLength},
	allMine + `redis.call("DEL",unpack(KEYS)) return redis.status_reply("OK")`: {
		plan: plan{verb: release, done: ok, free: nul, other: nul}, hashes: "9470c810040e272ee6c579d8d4331aaf6332a7b1", args: 1,
	},
	allMine + `for _,key in ipairs(KEYS) do redis.call("PEXPIRE",key,ARGV[2]) end return redis.status_reply("OK")`: {
		plan: plan{verb: extend, done: ok, free: nul, other: nul}, hashes: "5a22d7e8431313862816d4416b5e46dd70fc340d", args: 2, ttl: 2,
	},
	allMine + `local min=0 for _,key in ipairs(KEYS) do local ttl=redis.call("PTTL",key) if ttl>0 and (min==0 or ttl<min) then min=ttl end end return min`: {
		plan: plan{verb: compare, free: nul, other: nul}, hashes: "66e1084c2d842a7e8c271925aae90219fac4e129", args: 1,
	},

	// redis-py
	`local token=redis.call("GET",KEYS[1]) if not token or token~=ARGV[1] then return 0 end redis.call("DEL",KEYS[1]) return 1`:             {plan: compareTo, hashes: "c3f8721cbb97f72bc19e972846bd7aaf91901658", args: 1},
	`local token=redis.call("GET",KEYS[1]) if not token or token~=ARGV[1] then return 0 end redis.call("PEXPIRE",KEYS[1],ARGV[2]) return 1`: {plan: extendOwn, hashes: "1cac51482acf5858da00f6d685d68f886cd6b6b2", args: 2, ttl: 2},
	`local token=redis.call("GET",KEYS[1]) if not token or token~=ARGV[1] then return 0 end
	local left=redis.call("PTTL",KEYS[1]) if not left then left=0 end if left<0 then return 0 end
	local new=ARGV[2] if ARGV[3]=="0" then new=ARGV[2]+left end redis.call("PEXPIRE",KEYS[1],new) return 1`: {
		plan: extendOwn, hashes: "a4e8783852e6b949f9ef3a97212805108459a890", args: 3, ttl: 2,
		fill: func(p *plan, args []string) string { p.adds = args[2] == "0"; return "" },
	},

	// node-redlock, with one key
	`for i,key in ipairs(KEYS) do if redis.call("EXISTS",key)==1 then return 0 end end for i,key in ipairs(KEYS) do redis.call("SET",key,ARGV[1],"PX",ARGV[2]) end return #KEYS`: {
		plan: plan{verb: acquire, prefix: -1, done: one, free: none, other: none}, hashes: "96da70f7716f27d278a5218544df37fd8b0a5e4c e5a322e2634ef59a516e8ea150cb085afafee684", args: 2, ttl: 2,
	},
	`for i,key in ipairs(KEYS) do if redis.call("GET",key)~=ARGV[1] then return 0 end end for i,key in ipairs(KEYS) do redis.call("SET",key,ARGV[1],"PX",ARGV[2]) end return #KEYS`: {
		plan: extendOwn, hashes: "aed6f382e410db8ba7926d4e5e9aab410bf2a78a ce46f80993d5dac20dd066eb301a4e37994bdbed", args: 2, ttl: 2,
	},
	`local count=0 for i,key in ipairs(KEYS) do if redis.call("GET",key)==ARGV[1] then redis.pcall("DEL",key) count=count+1 end end return count`: {plan: compareTo, hashes: "e4612211c9f8f51c257e26e056b0a654b3187242 0f0f23b9048b36752b5be114f357ba083449f908", args: 1},
}

// byWords and published are the scripts of library by their words, and by the hashes of what
// libraries send.
var byWords, published = func() (byWords, published map[string]*script) {
	byWords, published = map[string]*script{}, map[string]*script{}
	for source, s := range library {
		byWords[wordsOf(source)] = s
		for hash := range strings.FieldsSeq(s.hashes) {
			published[hash] = s
		}
	}
	return byWords, published
}()

// planOfEval returns the plan of EVAL or EVALSHA, whose script find returns, or nil.
func planOfEval(args []string, find func(string) *script, unknown string) (plan, *reply) {
	if len(args) < 2 {
		return refuse("ERR wrong number of arguments for 'eval' command")
	}
	s := find(args[0])
	if s == nil {
		return refuse(unknown)
	}
	keys, err := strconv.Atoi(args[1])
	switch {
	case err != nil || keys < 0 || keys > len(args)-2:
		return refuse("ERR Number of keys can't be greater than number of args")
	case keys != 1:
		return refuse("ERR this script is about " + strconv.Itoa(keys) + " keys: " + what + ", one with each command")
	case len(args)-2-keys < s.args: // more do no harm: rueidislock sends some
		return refuse("ERR this script takes " + strconv.Itoa(s.args) + " arguments behind the key")
	}
	name, args := args[2], args[3:]
	p := s.plan
	p.name, p.value = name, args[0]
	if s.ttl > 0 {
		span, wrong := milliseconds(args[s.ttl-1], max(s.unit, time.Millisecond))
		if wrong != "" {
			return refuse(wrong)
		}
		if p.ttl = span; s.at {
			p.ttl, p.until = 0, span.Milliseconds()
		}
	}
	if s.fill != nil {
		if wrong := s.fill(&p, args); wrong != "" {
			return refuse(wrong)
		}
	}
	return p, nil
}

const (
	refusedScript = "ERR this server does not know the script: " + what + ". It runs no scripts, but recognises those of lock libraries that compare a value: see docs/redis-door.md"
	noScript      = "NOSCRIPT No matching script. Please use EVAL."
)

// scripts are the known scripts that clients may call by their hash. It is safe for concurrent
// use.
type scripts struct {
	mu     sync.Mutex
	hashes map[string]*script
}

// mostHashes bounds the spellings of known scripts that are remembered. When there are more, all
// are forgotten: a client sends the text of a script whose hash is unknown.
const mostHashes = 1000

// learn returns the script that source is a spelling of, or nil if none is known. It remembers the
// hash of source.
func (s *scripts) learn(source string) *script {
	hash := hashOf(source)
	known := s.byHash(hash)
	if known != nil {
		return known
	}
	if known = byWords[wordsOf(source)]; known == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hashes == nil || len(s.hashes) >= mostHashes {
		s.hashes = map[string]*script{}
	}
	s.hashes[hash] = known
	return known
}

// byHash returns the script with a hash, or nil.
func (s *scripts) byHash(hash string) *script {
	hash = strings.ToLower(hash)
	if known := published[hash]; known != nil {
		return known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hashes[hash]
}

func hashOf(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// wordsOf returns the words of a script in Lua, separated by spaces, or nothing if it has parts
// that no known script has. Texts with the same words do the same.
func wordsOf(source string) string {
	var out []string
	locals := map[string]string{} // what local variables are called here: a $ is in no name of Lua
	source = strings.TrimPrefix(source, "\ufeff")
	for source != "" {
		c := source[0]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ';':
			source = source[1:]
		case strings.HasPrefix(source, "--"):
			if strings.HasPrefix(source, "--[") {
				return ""
			}
			_, source, _ = strings.Cut(source, "\n")
		case c == '"' || c == '\'':
			s, rest, closed := strings.Cut(source[1:], string(c))
			if !closed || strings.ContainsAny(s, "\\\"'\r\n") {
				return ""
			}
			if !follows(out, "status_reply", "(") {
				s = strings.ToUpper(s) // a command or an option
			}
			out, source = append(out, `"`+s+`"`), rest
		case isWord(c):
			n := 1
			for n < len(source) && isWord(source[n]) {
				n++
			}
			word := source[:n]
			switch {
			case follows(out, "."): // a field
			case follows(out, "local") && word != "function", follows(out, "local", "function"):
				if locals[word] == "" {
					locals[word] = "$" + strconv.Itoa(len(locals))
				}
				word = locals[word]
			case locals[word] != "":
				word = locals[word]
			}
			out, source = append(out, word), source[n:]
		default:
			n := 1
			if len(source) > 1 && strings.Contains("== ~= <= >= ..", source[:2]) && source[1] != ' ' {
				n = 2
			}
			out, source = append(out, source[:n]), source[n:]
		}
	}
	return strings.Join(out, " ")
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// follows reports whether the last words are those.
func follows(words []string, last ...string) bool {
	if len(words) < len(last) {
		return false
	}
	for i, w := range last {
		if words[len(words)-len(last)+i] != w {
			return false
		}
	}
	return true
}
