package script

import (
	"embed"
	"fmt"
	"maps"
	"strings"
	"sync"
)

// Each file in lua is one function with parameters, and is named as the function. Each file
// in lua/calls is what one script does with KEYS and ARGV. A line "-- uses NAME, ..." in
// either stands for the definitions of functions that are used after it.
//
// A server runs a script from its beginning each time, and takes 35 ns for each definition
// that it comes to. So the functions for what is rare are defined only where they are
// needed: with all of them at the beginning, a lock and an unlock would take 0.5 us longer
// than their 9 us. No function uses local variables of another one; a test checks that.

//go:embed lua
var luaFiles embed.FS

// uses begins a line that stands for the definitions of functions.
const uses = "-- uses "

// loaded returns the texts of the scripts, by name.
var loaded = map[string]func() *source{}

// load makes a script from a file in lua/calls. It is for package variables only. Variants of a
// script share its text, which is composed when one of them is first needed: all texts together
// took a fifth of the processor time in which a program starts, whether it uses Redis or not.
func load(name string, keys, args int, does Effect) *Script {
	if loaded[name] == nil {
		loaded[name] = sync.OnceValue(func() *source { return sourceOf(textOf(name)) })
	}
	return newScript(name, loaded[name], keys, args, does)
}

// textOf composes the text of a script.
func textOf(name string) string {
	var b strings.Builder
	b.Grow(32 << 10)
	b.WriteString("if #KEYS == 0 then return 0 end -- called only to load the script\n")
	fmt.Fprintf(&b, "local call, LEAD, LIFE, HOUR = redis.call, %d, '%d', %d -- us, ms, us\n", maxLead.Microseconds(), counterTTL.Milliseconds(), counterStep.Microseconds())
	compose(&b, "calls/"+name, map[string]bool{})
	return b.String()
}

// compose appends a file and what it uses, unless that is defined around it. It returns
// what is defined after the file.
func compose(b *strings.Builder, name string, around map[string]bool) map[string]bool {
	text, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the files are embedded, so this is a mistake in a script
	}
	blocks := []block{{0, around}}
	// Without a regular expression: this is done whenever a program starts that uses Redis, and
	// took a tenth of "leasehold run x -- true".
	for line := range strings.Lines(string(text)) {
		b.WriteString(line)
		code := strings.TrimLeft(line, " ")
		depth := len(line) - len(code)
		for depth < blocks[len(blocks)-1].depth && code != "\n" {
			blocks = blocks[:len(blocks)-1]
		}
		names, ok := strings.CutPrefix(code, uses)
		if !ok {
			continue
		}
		defined := maps.Clone(blocks[len(blocks)-1].defined)
		for used := range strings.SplitSeq(strings.TrimSuffix(names, "\n"), ", ") {
			if !defined[used] {
				defined = compose(b, used, defined)
				defined[used] = true
			}
		}
		blocks = append(blocks, block{depth, defined})
	}
	for blocks[len(blocks)-1].depth > 0 {
		blocks = blocks[:len(blocks)-1]
	}
	return blocks[len(blocks)-1].defined
}

// block is what is defined at one depth of indentation.
type block struct {
	depth   int
	defined map[string]bool
}
