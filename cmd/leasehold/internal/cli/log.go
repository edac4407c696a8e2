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
	return slog.New(&logHandler{least: slog.LevelDebug, say: func(s string) { v.note("%s", s) }})
}

// storeLogger is for a store, whose warnings are always printed. Messages logged
// while the store is opened are held back until settle is called: if opening
// failed, the error says the same.
func (v *voice) storeLogger() (log *slog.Logger, settle func(opened bool)) {
	if v.verbose {
		return v.logger(), func(bool) {}
	}
	var mu sync.Mutex
	var held []string
	settled := false
	say := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		if settled {
			v.note("%s", s)
		} else {
			held = append(held, s)
		}
	}
	return slog.New(&logHandler{least: slog.LevelWarn, say: say}), func(opened bool) {
		mu.Lock()
		defer mu.Unlock()
		settled = true
		for _, s := range held {
			if opened {
				v.note("%s", s)
			}
		}
	}
}

// logHandler prints log records as lines of text.
type logHandler struct {
	say   func(string)
	least slog.Level
	attrs string // of WithAttrs, ready to print
	group string // of WithGroup, "a.b."
}

func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.least }

func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		writeAttr(&b, h.group, a)
		return true
	})
	what := ""
	switch {
	case r.Level >= slog.LevelWarn:
		what = "warning: "
	case r.Level < slog.LevelInfo:
		what = "debug: "
	}
	text := what + r.Message
	if b.Len() > 0 {
		text += " (" + b.String()[1:] + ")"
	}
	h.say(text)
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
	var b strings.Builder
	for _, a := range attrs {
		writeAttr(&b, h.group, a)
	}
	c := *h
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
