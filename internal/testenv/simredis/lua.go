package simredis

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

// engine runs scripts. From one to the next it keeps only the compiled scripts.
type engine struct {
	state     *lua.LState
	functions map[string]*lua.LFunction

	server *Server // the server whose script runs
	wrote  bool    // the script has written
}

var engines = sync.Pool{New: func() any { return newEngine() }}

func newEngine() *engine {
	e := &engine{state: lua.NewState(lua.Options{SkipOpenLibs: true}), functions: map[string]*lua.LFunction{}}
	for name, open := range map[string]lua.LGFunction{"": lua.OpenBase, "table": lua.OpenTable, "string": lua.OpenString, "math": lua.OpenMath} {
		e.state.Push(e.state.NewFunction(open))
		e.state.Push(lua.LString(name))
		e.state.Call(1, 0)
	}
	redis := e.state.NewTable()
	redis.RawSetString("call", e.state.NewFunction(func(l *lua.LState) int { return e.call(l, true) }))
	redis.RawSetString("pcall", e.state.NewFunction(func(l *lua.LState) int { return e.call(l, false) }))
	redis.RawSetString("error_reply", e.state.NewFunction(func(l *lua.LState) int { return single(l, "err") }))
	redis.RawSetString("status_reply", e.state.NewFunction(func(l *lua.LState) int { return single(l, "ok") }))
	redis.RawSetString("sha1hex", e.state.NewFunction(func(l *lua.LState) int { l.Push(lua.LString(hash(l.CheckString(1)))); return 1 }))
	e.state.SetGlobal("redis", redis)
	e.state.GetGlobal("string").(*lua.LTable).RawSetString("format", e.state.NewFunction(format))
	return e
}

func single(l *lua.LState, field string) int {
	t := l.NewTable()
	t.RawSetString(field, lua.LString(l.CheckString(1)))
	l.Push(t)
	return 1
}

func hash(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// compiled has the scripts that any server was sent, by hash.
var compiled sync.Map // of *lua.FunctionProto

func compile(sha, text string) (*lua.FunctionProto, error) {
	if p, ok := compiled.Load(sha); ok {
		return p.(*lua.FunctionProto), nil
	}
	chunk, err := parse.Parse(strings.NewReader(text), "user_script")
	if err != nil {
		return nil, err
	}
	p, err := lua.Compile(chunk, "user_script")
	if err == nil {
		compiled.Store(sha, p)
	}
	return p, err
}

// run executes a script that the server knows.
func (s *Server) run(sha string, keys, args []string) reply {
	e := engines.Get().(*engine)
	defer engines.Put(e)
	e.server, e.wrote = s, false
	text := s.scripts[sha]
	if s.Edit != nil {
		c, ok := s.edited[sha]
		if !ok {
			c.text = s.Edit(text)
			c.sha = hash(c.text)
			s.edited[sha] = c
		}
		sha, text = c.sha, c.text
	}
	f := e.functions[sha]
	if f == nil {
		p, err := compile(sha, text)
		if err != nil {
			return failure("ERR Error compiling script: " + err.Error())
		}
		f = e.state.NewFunctionFromProto(p)
		e.functions[sha] = f
	}
	e.state.SetGlobal("KEYS", e.words(keys))
	e.state.SetGlobal("ARGV", e.words(args))
	if err := e.state.CallByParam(lua.P{Fn: f, NRet: 1, Protect: true}); err != nil {
		if x, ok := err.(*lua.ApiError); ok {
			if t, ok := x.Object.(*lua.LTable); ok {
				return failure(lua.LVAsString(t.RawGetString("err")) + " script: " + sha + ", on @user_script:1.")
			}
		}
		return failure("ERR " + strings.SplitN(err.Error(), "\n", 2)[0] + " script: " + sha + ", on @user_script:1.")
	}
	v := e.state.Get(-1)
	e.state.Pop(1)
	return toReply(v)
}

func (e *engine) words(words []string) *lua.LTable {
	t := e.state.CreateTable(len(words), 0)
	for i, w := range words {
		t.RawSetInt(i+1, lua.LString(w))
	}
	return t
}

// call is redis.call, which raises errors, and redis.pcall, which returns them.
func (e *engine) call(l *lua.LState, raise bool) int {
	words := make([]string, l.GetTop())
	for i := range words {
		switch v := l.Get(i + 1).(type) {
		case lua.LString:
			words[i] = string(v)
		case lua.LNumber:
			words[i] = numeral(float64(v))
		default:
			l.RaiseError("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	r := e.server.perform(words, e)
	if r.kind == '-' && raise {
		l.Error(e.value(r), 1)
	}
	l.Push(e.value(r))
	return 1
}

// numeral returns a number as Redis passes it to a command.
func numeral(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1<<62 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', 17, 64)
}

// value converts a reply to a value of scripts.
func (e *engine) value(r reply) lua.LValue {
	switch r.kind {
	case ':':
		return lua.LNumber(r.n)
	case '$':
		return lua.LString(r.text)
	case '+', '-':
		t := e.state.NewTable()
		t.RawSetString(map[byte]string{'+': "ok", '-': "err"}[r.kind], lua.LString(r.text))
		return t
	case '_':
		return lua.LFalse
	}
	t := e.state.CreateTable(len(r.list), 0)
	for i, x := range r.list {
		t.RawSetInt(i+1, e.value(x))
	}
	return t
}

// toReply converts the value that a script returns to a reply.
func toReply(v lua.LValue) reply {
	switch v := v.(type) {
	case lua.LNumber:
		return number(int64(v))
	case lua.LString:
		return bulk(string(v))
	case lua.LBool:
		if v {
			return number(1)
		}
	case *lua.LTable:
		if err, ok := v.RawGetString("err").(lua.LString); ok {
			return failure(string(err))
		}
		if said, ok := v.RawGetString("ok").(lua.LString); ok {
			return reply{kind: '+', text: string(said)}
		}
		r := reply{kind: '*'}
		for i := 1; ; i++ {
			x := v.RawGetInt(i)
			if x == lua.LNil {
				return r
			}
			r.list = append(r.list, toReply(x))
		}
	}
	return nullReply
}

// format is string.format. As in Lua, it also takes numbers that are written as strings.
func format(l *lua.LState) int {
	pattern, out, arg := l.CheckString(1), "", 1
	for pattern != "" {
		at := strings.IndexByte(pattern, '%')
		if at < 0 {
			out += pattern
			break
		}
		end := at + 1 + strings.IndexAny(pattern[at+1:], "%diuoxXcsqeEfgG")
		out += pattern[:at]
		verb := pattern[at : end+1]
		pattern = pattern[end+1:]
		switch verb[len(verb)-1] {
		case '%':
			out += "%"
			continue
		case 's', 'q':
			arg++
			out += fmt.Sprintf(verb, lua.LVAsString(l.ToStringMeta(l.Get(arg))))
		case 'd', 'i', 'u', 'x', 'X', 'o', 'c':
			arg++
			verb = strings.NewReplacer("i", "d", "u", "d").Replace(verb)
			out += fmt.Sprintf(verb, int64(l.CheckNumber(arg)))
		default:
			arg++
			out += fmt.Sprintf(verb, float64(l.CheckNumber(arg)))
		}
	}
	l.Push(lua.LString(out))
	return 1
}
