package sim

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
	"github.com/leasehold-dev/leasehold/store"
)

// op is a command as the judge and the history see it.
type op struct {
	name   string        // of the script, or of the command
	lock   int           // -1: none
	ids    []string      // of the owners that it is about; of a return the one that it releases is first
	owners []int         // their numbers
	rank   uint64        // of the first owner: when it began to wait
	ttl    time.Duration // of an acquire
	bars   time.Duration // of a release: for how long it keeps late requests of its owner out
	// Of locks that several can hold:
	weight int64  // that an acquire wants
	heals  bool   // an acquire of a lease that the node has lost
	must   string // the slots that its owner must have; empty if any will do
	breaks bool   // it ends the lease of its owner at once, for an operator

	operator bool // an operator has sent it
}

// releases reports whether the command ends leases, or places, of its first owner.
func (o op) releases() bool { return o.name == "release" || o.name == "return" }

// ends reports whether an operator ends leases, or places, of its first owner by the command.
func (o op) ends() bool { return o.operator && (o.releases() || o.breaks) }

// acquires reports whether it asks for a lock.
func (o op) acquires() bool { return o.name == "acquire" || o.name == "return" }

func (o op) String() string {
	if o.lock < 0 {
		return o.name
	}
	s := fmt.Sprintf("%s lock %d", o.name, o.lock+1)
	for _, n := range o.owners {
		s += fmt.Sprintf(" o%d", n)
	}
	return s
}

// names knows scripts by their text.
type names struct {
	hist   *history
	hashes map[string]string
}

// read finds out which lock and owners a command is about. It numbers those that are new.
func (n *names) read(s *simredis.Server, words []string) op {
	return n.number(n.parse(s, words))
}

// number fills in the numbers of the owners.
func (n *names) number(o op) op {
	for _, id := range o.ids {
		if k := n.hist.number(id); !slices.Contains(o.owners, k) {
			o.owners = append(o.owners, k)
		}
	}
	return o
}

// parse is read without numbers.
func (n *names) parse(s *simredis.Server, words []string) op {
	o := op{name: strings.ToLower(words[0]), lock: -1}
	if o.name != "evalsha" && o.name != "eval" || len(words) < 3 {
		return o
	}
	o.name = n.script(s, words[1])
	keys, _ := strconv.Atoi(words[2])
	args := words[3+keys:]
	request := ""
	list := listScripts[o.name] && len(args) > 1
	if list {
		o.name, request, args = stepNames[letterOf(args[1])], args[1], args[2:]
	} else if (o.name == "acquire" || o.name == "release") && len(args) > 0 {
		request, args = args[0], args[1:]
	}
	// The TTL, or how long the tombstone lasts.
	lasts, _, _ := strings.Cut(request[min(1, len(request)):], " ")
	if o.name == "renewHold" && list {
		args = args[1:] // without their number
	}
	o.readShared(args)
	if same, ok := mutexNames[o.name]; ok {
		if o.name = same; o.releases() && len(args) > 0 {
			lasts = args[0]
		} else if len(args) > 3 {
			lasts = args[3]
		}
	}
	ms, _ := strconv.Atoi(lasts)
	switch o.name {
	case "acquire":
		o.ttl = time.Duration(ms) * time.Millisecond
	case "release":
		o.bars = time.Duration(ms) * time.Millisecond
	}
	for i, w := range words[3:] {
		if i == 0 {
			o.lock = lockIndex(w)
		}
		owner := ""
		if _, after, ok := strings.Cut(w, "}:gone:"); ok {
			owner = after
		} else if id, meta, ok := strings.Cut(w, " "); ok && strings.HasPrefix(meta, "{") {
			owner = id
		}
		if owner != "" {
			o.ids = append(o.ids, owner)
		}
	}
	if len(o.ids) > 0 {
		o.rank = store.Rank(o.ids[0])
	}
	return o
}

// readShared reads the arguments of a script for locks that several can hold, some of which
// name owners alone, without a description.
func (o *op) readShared(args []string) {
	slots := ""
	switch {
	case o.name == "admit" && len(args) > 7:
		o.weight, o.heals, slots = number(args[1]), args[5] == "h", args[7]
	case o.name == "confirmHold" && len(args) > 1:
		o.ids, slots = append(o.ids, args[0]), args[1]
	case o.name == "renewHold":
		for i := 4; i+1 < len(args); i += 2 {
			o.ids = append(o.ids, args[i])
		}
	case o.name == "change" && len(args) > 3:
		o.ids = append(o.ids, args[1])
		o.breaks = (args[0] == "break" || args[0] == "part") && args[3] == "1"
	}
	if must, ok := strings.CutPrefix(slots, "="); ok {
		o.must = must
	}
}

// isList reports whether a command is a list of steps.
func (n *names) isList(s *simredis.Server, words []string) bool {
	return len(words) > 4 && strings.EqualFold(words[0], "evalsha") && listScripts[n.script(s, words[1])]
}

func (n *names) script(s *simredis.Server, word string) string {
	if name, ok := n.hashes[word]; ok {
		return name
	}
	text := word
	if known, ok := s.Script(word); ok {
		text = known
	} else if len(word) == 40 {
		return "unknown" // the server does not know it either
	}
	name := scriptName(text)
	n.hashes[word] = name
	if text == word { // a client sends the text first, and at once the hash, which no server knows yet
		n.hashes[fmt.Sprintf("%x", sha1.Sum([]byte(text)))] = name
	}
	return name
}

// scriptName is the file in lua/calls that the script is made of.
func scriptName(text string) string {
	for _, f := range scriptFiles() {
		if strings.Contains(text, f.begins) {
			return f.name
		}
	}
	return "script"
}

type scriptFile struct{ name, begins string }

// scriptFiles are the calls of the Redis store's scripts, with the text before the first
// function that they use.
var scriptFiles = sync.OnceValue(func() (all []scriptFile) {
	files, err := filepath.Glob(scriptsDir + "/*.lua")
	if err != nil || len(files) == 0 {
		panic("sim: the scripts of the Redis store are not where they were")
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			panic(err)
		}
		begins, _, _ := strings.Cut(string(text), "-- uses ")
		all = append(all, scriptFile{strings.TrimSuffix(filepath.Base(f), ".lua"), begins})
	}
	return all
})

// ownerOf returns the owner whose value a lock's key holds.
func ownerOf(value string) string {
	owner, _, _ := strings.Cut(value, " ")
	return owner
}

func lockName(i int) string { return "lock-" + strconv.Itoa(i+1) }

func lockIndex(name string) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "lock-"))
	return i - 1
}

// firstNumber returns the first number of an array, which may be nested.
func firstNumber(said []byte) byte {
	i := slices.Index(said, ':')
	if len(said) == 0 || said[0] != '*' || i < 0 || i+1 >= len(said) {
		return 0
	}
	return said[i+1]
}
