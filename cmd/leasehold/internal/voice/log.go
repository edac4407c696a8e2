package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
)

// logger is for code whose errors say the same as its logs: it prints only in
// verbose mode.
func (v *voice) logger() *slog.Logger {
	if !v.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&logHandler{least: slog.LevelDebug, say: v.remark})
}

// remark is what a log record says.
type remark struct {
	text        string
	node, cause string // if it says why a node cannot be used
}

// remark prints r.
func (v *voice) remark(r remark) {
	if r.node != "" && r.cause != "" {
		v.told(r.node, r.cause)
	}
	v.note("%s", r.text)
}

// storeLogger is for a store, whose warnings are always printed. Messages logged
// while the store is opened are held back until settle is called: if opening
// failed, the error says the same.
func (v *voice) storeLogger() (log *slog.Logger, settle func(opened bool)) {
	if v.verbose {
		return v.logger(), func(bool) {}
	}
	var mu sync.Mutex
	var held []remark
	settled := false
	say := func(r remark) {
		mu.Lock()
		defer mu.Unlock()
		if settled {
			v.remark(r)
		} else {
			held = append(held, r)
		}
	}
	return slog.New(&logHandler{least: slog.LevelWarn, say: say}), func(opened bool) {
		mu.Lock()
		defer mu.Unlock()
		settled = true
		for _, r := range held {
			if opened {
				v.remark(r)
			}
		}
	}
}

// logHandler prints log records as lines of text.
type logHandler struct {
	say   func(remark)
	least slog.Level
	attrs string // of WithAttrs, ready to print
	node  string // of WithAttrs
	group string // of WithGroup, "a.b."
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.least }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.attrs)
	said := remark{node: h.node}
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, h.group, a)
		if a.Key == "err" {
			said.cause = a.Value.String()
		}
		return true
	})
	what := ""
	switch {
	case r.Level >= slog.LevelWarn:
		what = "warning: "
	case r.Level < slog.LevelInfo:
		what = "debug: "
	}
	said.text = what + r.Message
	if b.Len() > 0 {
		said.text += " (" + b.String()[1:] + ")"
	}
	h.say(said)
	return nil
}

// writeAttr writes " key=value".
func writeAttr(b *strings.Builder, group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, a := range v.Group() {
			writeAttr(b, group, a)
		}
		return
	}
	b.WriteString(" " + group + a.Key + "=" + shown(v.String()))
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	var b strings.Builder
	for _, a := range attrs {
		writeAttr(&b, h.group, a)
		if a.Key == "node" {
			c.node = a.Value.String()
		}
	}
	c.attrs += b.String()
	return &c
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.group += name + "."
	}
	return &c
}
