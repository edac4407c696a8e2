package script

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// globals has the names that any file may use: those that every script begins with, and
// those of Redis.
var globals = []string{"call", "LEAD", "LIFE", "HOUR", "redis", "string", "math", "table", "tonumber", "type", "ipairs", "pcall", "unpack", "select"}

// A file is one function that needs no local variable of its caller: all names in it are its
// own, or of functions that it declares to use.
func TestFunctionsStandAlone(t *testing.T) {
	used := map[string]bool{}
	files := map[string]bool{}
	err := fs.WalkDir(luaFiles, "lua", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := luaFiles.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(path.Base(file), ".lua")
		known := slices.Clone(globals)
		var code []string
		for line := range strings.Lines(string(text)) {
			if names, ok := strings.CutPrefix(strings.TrimLeft(line, " "), uses); ok {
				for _, f := range strings.Split(strings.TrimSpace(names), ", ") {
					known, used[f] = append(known, f), true
				}
			}
			if !strings.HasPrefix(line, "--") {
				code = append(code, line)
			}
		}
		if strings.Contains(file, "/calls/") {
			known = append(known, "KEYS", "ARGV")
		} else {
			files[name] = true
			if !strings.HasPrefix(code[0], "local function "+name+"(") || strings.Index(strings.Join(code, ""), "\nend\n") != len(strings.Join(code, ""))-len("\nend\n") {
				t.Errorf("%s has more than the function %s, or another", file, name)
			}
		}
		for _, g := range globalsOf(t, file, string(text)) {
			if !slices.Contains(known, g) {
				t.Errorf("%s uses the name %s without declaring it", file, g)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for f := range files {
		if !used[f] {
			t.Errorf("no file uses %s", f)
		}
	}
}

// globalsOf returns the global variables that a text reads or writes.
func globalsOf(t *testing.T, file, text string) (names []string) {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(text), file)
	if err != nil {
		t.Fatal(err)
	}
	proto, err := lua.Compile(chunk, file)
	if err != nil {
		t.Fatal(err)
	}
	var visit func(p *lua.FunctionProto)
	visit = func(p *lua.FunctionProto) {
		for _, code := range p.Code {
			if op := int(code >> 26); op == lua.OP_GETGLOBAL || op == lua.OP_SETGLOBAL {
				names = append(names, lua.LVAsString(p.Constants[code&0x3ffff]))
			}
		}
		for _, inner := range p.FunctionPrototypes {
			visit(inner)
		}
	}
	visit(proto)
	return names
}

// Every function that a script calls is defined before the call.
func TestCalledFunctionsAreDefined(t *testing.T) {
	for name, source := range loaded {
		text := source().text
		chunk, err := parse.Parse(strings.NewReader(text), name)
		if err == nil {
			_, err = lua.Compile(chunk, name)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, g := range globalsOf(t, name, text) {
			if !slices.Contains(globals, g) && g != "KEYS" && g != "ARGV" {
				t.Errorf("%s uses the name %s where it is not defined", name, g)
			}
		}
	}
}
