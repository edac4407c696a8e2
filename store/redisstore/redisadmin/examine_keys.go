package redisadmin

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

const (
	surveyBatch = 200 // locks examined in one step
	exampleKeys = 3   // examples per oddity
)

// survey examines the keys of locks, up to the limit of the scope. Apart from SCAN it
// uses only commands that any user that locks may run.
func (d *examiner) survey() error {
	if d.found.Server.Mode == "sentinel" {
		return nil
	}
	f := finds{names: map[string]bool{}, most: d.scope.MaxLocks, until: time.Now().Add(surveyTime)}
	prefix := script.GlobEscape.Replace(d.scope.Prefix)
	patterns := []string{script.KeyBegin + prefix + "*}:*"}
	if prefix != "" { // every key that begins with it is the name of a lock
		patterns = append(patterns, prefix+"*")
	}
	for _, p := range patterns {
		if err := d.scan(p, &f); err != nil || d.found.Keys.Err != nil {
			return err
		}
	}
	d.found.Keys.Partial = f.partial
	for batch := range slices.Chunk(f.order, surveyBatch) {
		if err := d.locks(batch); err != nil {
			return err
		}
	}
	return nil
}

// finds collects the keys that were found.
type finds struct {
	names   map[string]bool
	order   []string // of locks
	most    int
	until   time.Time
	partial bool
}

func (f *finds) full() bool {
	return len(f.order) >= f.most || time.Now().After(f.until)
}

func (f *finds) add(key string) {
	if inner, ok := strings.CutPrefix(key, script.KeyBegin); ok {
		if name, ok := strings.CutSuffix(inner, script.CounterEnd); ok {
			key = name
		} else if strings.Contains(inner, "}:") {
			return // a tombstone, or a key of another program that is not about locks
		}
	}
	if !f.names[key] && key != script.MarkKey && key != "" {
		f.names[key] = true
		f.order = append(f.order, key)
	}
}

// scan collects the keys that match, up to the limits.
func (d *examiner) scan(pattern string, f *finds) error {
	for cursor := "0"; ; {
		v, err := d.askFor("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
		if err != nil {
			return err
		}
		if v.Kind == '-' {
			d.found.Keys.Err = resp.ErrorOf(v)
			return nil
		}
		if len(v.List) != 2 {
			d.found.Keys.Err = resp.Unexpected(v)
			return nil
		}
		for _, key := range v.List[1].List {
			f.add(string(key.Text))
		}
		next := string(v.List[0].Text)
		switch {
		case next == "0":
			return nil
		case next == cursor || f.full():
			f.partial = true
			return nil
		}
		cursor = next
	}
}

// locks examines some locks and their counters.
func (d *examiner) locks(names []string) error {
	const each = 3
	var commands [][]byte
	for _, name := range names {
		counter := script.KeyBegin + name + script.CounterEnd
		commands = append(commands, resp.Command("GET", name), resp.Command("PTTL", name), resp.Command("GET", counter))
	}
	said, err := d.ask(commands...)
	if err != nil {
		return err
	}
	for i, name := range names {
		v := said[each*i : each*(i+1)]
		counter := script.KeyBegin + name + script.CounterEnd
		d.found.Keys.Locks++
		_, number := v[2].Number()
		switch wrong := v[2].Code() == resp.WrongType; {
		case wrong:
			d.odd(ForeignCounter, counter, "no string")
			continue // then the name may not be that of a lock either
		case v[2].Kind == '$' && !v[2].Null && !number:
			d.odd(ForeignCounter, counter, "")
			continue
		}
		switch {
		case v[0].Code() == resp.WrongType:
			if err := d.mistyped(name); err != nil {
				return err
			}
		case v[0].Kind != '$' || v[0].Null:
		case neverExpires(v[1]):
			d.odd(Endless, name, likeness(string(v[0].Text)))
		case !ours(string(v[0].Text)):
			d.odd(Foreign, name, likeness(string(v[0].Text)))
		}
	}
	return nil
}

// mistyped finds out what a key that is not a string holds, as far as permissions allow.
func (d *examiner) mistyped(name string) error {
	said, err := d.ask(resp.Command("TYPE", name), resp.Command("HSCAN", name, "0", "COUNT", "10"))
	if err != nil {
		return err
	}
	kind := ""
	if said[0].Kind == '+' {
		kind = "a " + string(said[0].Text)
	}
	if len(said[1].List) == 2 && len(said[1].List[1].List) > 0 && redissonField.Match(said[1].List[1].List[0].Text) {
		d.odd(Redisson, name, "")
		return nil
	}
	d.odd(WrongType, name, kind)
	return nil
}

func (d *examiner) odd(o Oddity, key, says string) {
	for i := range d.found.Keys.Odd {
		if k := &d.found.Keys.Odd[i]; k.Oddity == o {
			if k.Count++; len(k.Examples) < exampleKeys {
				k.Examples = append(k.Examples, OddKey{key, says})
			}
			return
		}
	}
	d.found.Keys.Odd = append(d.found.Keys.Odd, OddKeys{Oddity: o, Count: 1, Examples: []OddKey{{key, says}}})
}

// neverExpires reports whether the reply to PTTL says that a key has no expiry.
func neverExpires(v resp.Value) bool { return v.Kind == ':' && v.Num == -1 }

// redissonField matches a field of a Redisson lock, which is a hash: a client and one of
// its threads.
var redissonField = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}:[0-9]+$`)

var ownerAlone = regexp.MustCompile(`^[A-Za-z0-9_-]{27}$`)

// ours reports whether a value looks like one that this package writes.
func ours(value string) bool {
	owner, meta, ok := strings.Cut(value, " ")
	return ok && strings.HasPrefix(meta, "{") && owner != "" || ownerAlone.MatchString(value)
}

// likenesses are patterns that identify the values of other clients.
var likenesses = []struct {
	Value *regexp.Regexp
	says  string
}{
	{regexp.MustCompile(`^[A-Za-z0-9+/]{22}==$`), "as redsync writes"},
	{regexp.MustCompile(`^[A-Za-z0-9_-]{22}$`), "as bsm/redislock writes"},
	{regexp.MustCompile(`^[0-9a-f]{32}$`), "as redis-py and node-redlock write"},
	{regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`), "a UUID"},
}

// likeness describes a value. It does not show an unknown value, which may be
// confidential.
func likeness(value string) string {
	if ours(value) {
		return "as Leasehold writes"
	}
	for _, l := range likenesses {
		if l.Value.MatchString(value) {
			return l.says
		}
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return "a number"
	}
	if !utf8.ValidString(value) {
		return "binary data"
	}
	return ""
}
