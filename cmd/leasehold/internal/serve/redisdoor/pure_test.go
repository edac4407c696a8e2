package redisdoor

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func newReader(s string) *bufio.Reader { return bufio.NewReader(strings.NewReader(s)) }

// Scripts are recognised by what they do, however they are spelled, and scripts that differ in
// anything else are not.
func TestScriptsAreRecognised(t *testing.T) {
	// ShedLock
	if s := (&scripts{}).learn("if redis.call('get', KEYS[1]) == ARGV[1] then\n   return redis.call('pexpire', KEYS[1], ARGV[2])\nelse\n   return 0\nend\n"); s == nil || s.plan.verb != extend {
		t.Error("the script of ShedLock is unknown")
	}
	// Laravel
	if s := (&scripts{}).learn("if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n    if tonumber(ARGV[2]) > 0 then\n        return redis.call(\"expire\",KEYS[1],ARGV[2])\n    end\n\n    redis.call(\"persist\",KEYS[1])\n\n    return 1\nelse\n    return 0\nend"); s == nil || s.plan.verb != extend {
		t.Error("the script of Laravel is unknown")
	}
	const same = `
		-- the token
		local v = redis.call('get',  KEYS[1]);
		if not v or v ~= ARGV[1] then
			return 0
		end
		redis.call('del', KEYS[1])
		return 1`
	known := &scripts{}
	if s := known.learn(same); s == nil || s.plan.verb != release || known.byHash(strings.ToUpper(hashOf(same))) != s {
		t.Error("a script of redis-py is unknown")
	}
	for _, other := range []string{
		"", "return 1", strings.Replace(same, "~=", "==", 1), strings.Replace(same, "KEYS[1])\n", "KEYS[2])\n", 1),
		strings.Replace(same, "local v", "local redis", 1), strings.Replace(same, "if not v", "if not w", 1), strings.Replace(same, "v ~=", "ARGV ~=", 1),
		same + " return 2", strings.Replace(same, "'del'", "'d\\101l'", 1), "--[[ " + same + " ]]", strings.Replace(same, "'del'", "'de", 1),
		strings.Replace(same, "call('del'", "pcall('del'", 1), strings.Replace(same, "if not v", "if not $0", 1) + "x",
	} {
		if known.learn(other) != nil {
			t.Errorf("recognised %s", other)
		}
	}
	// Names that differ are not one, also if a name is declared twice.
	if a, b := wordsOf("local a=1 local a=2 local b=3 return a"), wordsOf("local a=1 local a=2 local b=3 return b"); a == b {
		t.Errorf("two scripts are one: %s", a)
	}
	for source, s := range library {
		if wordsOf(source) == "" || byWords[wordsOf(source)] != s {
			t.Errorf("two scripts are one, or %s has no words", source)
		}
		for hash := range strings.FieldsSeq(s.hashes) {
			if len(hash) != 40 || known.byHash(hash) != s {
				t.Errorf("hash %s of %s", hash, source)
			}
		}
	}
	for i := range 2 * mostHashes { // spellings without end
		known.learn(same + strings.Repeat(" ", i))
	}
	if len(known.hashes) > mostHashes {
		t.Errorf("%d hashes are remembered", len(known.hashes))
	}
	if last := same + strings.Repeat("\n", 2*mostHashes); known.learn(last) == nil || known.byHash(hashOf(last)) == nil {
		t.Error("a script is unknown that was loaded last")
	}
}

// The plans of commands, as libraries send them.
func TestPlans(t *testing.T) {
	known := &scripts{}
	sha := func(i int, s *script) string { return strings.Fields(s.hashes)[i] }
	var obtain, add, touch *script
	for source, s := range library {
		switch {
		case strings.Contains(source, "GETRANGE"):
			obtain = s
		case strings.Contains(source, "ARGV[3]==\"0\""):
			add = s
		case strings.Contains(source, `"NX") then return 1`):
			touch = s
		}
	}
	for _, c := range []struct {
		words string
		want  plan
	}{
		{"set k v nx px 1500", plan{verb: acquire, ttl: 1500 * time.Millisecond}},
		{"SET k v EX 3 NX", plan{verb: acquire, ttl: 3 * time.Second}},
		{"SET k v NX PXAT 1764384000000", plan{verb: acquire, until: 1764384000000}},
		{"SET k v NX EXAT 1764384000", plan{verb: acquire, until: 1764384000000}},
		{"SET k v XX PX 1", plan{verb: extend, ttl: time.Millisecond}},
		{"SET k v IFEQ v PX 1", plan{verb: extend, ttl: time.Millisecond}},
		{"DELEX k ifeq v", plan{verb: release}},
		{"EVALSHA 9eb62214c9af87ae5f9a9f12bb4520281c0d2ae1 1 k v 1764384000000", plan{verb: release}}, // rueidislock sends a time in vain
		{"EVALSHA " + sha(0, obtain) + " 1 k v 5 1000", plan{verb: acquire, prefix: 5, ttl: time.Second}},
		{"EVALSHA " + sha(0, add) + " 1 k v 1000 0", plan{verb: extend, adds: true, ttl: time.Second}},
		{"EVALSHA " + sha(0, add) + " 1 k v 1000 1", plan{verb: extend, ttl: time.Second}},
		{"EVALSHA " + sha(0, touch) + " 1 k v 1000", plan{verb: extend, create: true, ttl: time.Second}},
		{"EVALSHA eb0c00d98f6f33b4262419a509002884540f30be 1 k v 1 1000", plan{verb: acquire, prefix: 1, ttl: time.Second}},
		{"EVALSHA 5a22d7e8431313862816d4416b5e46dd70fc340d 1 k v 1000", plan{verb: extend, ttl: time.Second}},
	} {
		p, r := planOf(strings.Fields(c.words), known)
		if r != nil {
			t.Errorf("%s: %s", c.words, r.text)
			continue
		}
		if p.verb != c.want.verb || p.name != "k" || p.value != "v" || p.ttl != c.want.ttl || p.until != c.want.until || p.adds != c.want.adds || p.create != c.want.create || c.want.prefix > 0 && p.prefix != c.want.prefix {
			t.Errorf("%s: %+v", c.words, p)
		}
	}
}

// Each value is one owner, which is valid, and whose value is the one that was written.
func TestOwners(t *testing.T) {
	for _, v := range []string{"", "a", "a.b", "a:b", "redis:", " ", "\xff", "~!"} {
		a, err := newOwner(v)
		b, err2 := newOwner(v)
		got, ok := valueOf(a)
		if err != nil || err2 != nil || a == b || store.CheckOwner(a) != nil || store.Rank(a) != 0 || !ok || got != v {
			t.Errorf("%q: %s, %s, %v, %q", v, a, b, err, got)
		}
	}
	for _, owner := range []string{"", "redis:", "redis:x:y", "redis64:AAAAAAAAAAAA:!", store.NewOwner()} {
		if v, ok := valueOf(owner); ok {
			t.Errorf("%s is %q", owner, v)
		}
	}
}

func TestSameClient(t *testing.T) {
	for _, c := range []struct {
		holds, value string
		n            int
		want         bool
	}{{"abc1", "abc2", 3, true}, {"abc1", "abd2", 3, false}, {"ab", "abc", 3, false}, {"ab", "ab", 9, true}, {"", "x", 0, true}, {"y", "x", 0, false}} {
		if got := sameClient(c.holds, c.value, c.n); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Whatever bytes come, they are commands that mean one thing, or are refused. A command never
// asks for a lock without a time, or for one that its first word does not say.
func FuzzCommands(f *testing.F) {
	f.Add([]byte(encode("SET", "k", "v", "NX", "PX", "1000")))
	f.Add([]byte(encode("SET", "k", "v", "IFEQ", "v", "EX", "10")))
	f.Add([]byte(encode("EVAL", deleteOwn, "1", "k", "v")))
	f.Add([]byte(encode("EVALSHA", "e950836ed1e694540c503ef9972b8de518044d3b", "1", "k", "v")))
	f.Add([]byte(encode("HELLO", "3", "AUTH", "u", "p", "SETNAME", "n") + encode("MULTI") + encode("EXEC")))
	f.Add([]byte("*1\r\n$4\r\nPING\r\n*0\r\n*2\r\n$3\r\nGET\r\n$1\r\nk"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(raw), mostRead)
		s, known := &session{version: 2}, &scripts{}
		for {
			words, err := readCommand(in, nil)
			if err != nil {
				var wrong protocolError
				if !errors.As(err, &wrong) && err != io.EOF && err != io.ErrUnexpectedEOF {
					t.Fatal(err)
				}
				return
			}
			var r reply
			if answer, ok := s.answer(words, known, true, func(token string) bool { return token == "p" }); ok {
				r = answer
			} else if p, refused := planOf(words, known); refused != nil {
				r = *refused
			} else {
				if (p.verb == acquire || p.verb == extend) && p.ttl < time.Millisecond && p.until <= 0 {
					t.Fatalf("%q: %+v", words, p)
				}
				if o, err := newOwner(p.value); err == nil {
					if v, ok := valueOf(o); !ok || v != p.value || store.CheckOwner(o) != nil || store.Rank(o) != 0 {
						t.Fatalf("%q is %q", p.value, o)
					}
				}
				continue
			}
			for version := 2; version <= 3; version++ {
				left := bufio.NewReader(bytes.NewReader(r.append(nil, version)))
				if _, err := readReply(left); err != nil || left.Buffered() > 0 {
					t.Fatalf("%q: the reply %q is none: %v", words, r.append(nil, version), err)
				}
			}
		}
	})
}
