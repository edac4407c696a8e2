package voice

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Logger is for code whose errors say the same as its logs: it prints only in
// verbose mode.
func (v *Voice) Logger() *slog.Logger {
	if !v.Verbose {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&logHandler{least: slog.LevelDebug, say: v.NoteText})
}

// StoreLogger is for a store, whose warnings are always printed. Messages logged
// while the store is opened are held back until settle is called: if opening
// failed, the error says the same.
func (v *Voice) StoreLogger() (log *slog.Logger, settle func(opened bool)) {
	if v.Verbose {
		return v.Logger(), func(bool) {}
	}
	var mu sync.Mutex
	var held []string
	settled := false
	say := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if settled {
			v.NoteText(text)
		} else {
			held = append(held, text)
		}
	}
	return slog.New(&logHandler{least: slog.LevelWarn, say: say}), func(opened bool) {
		mu.Lock()
		defer mu.Unlock()
		settled = true
		for _, text := range held {
			if opened {
				v.NoteText(text)
			}
		}
	}
}

// logHandler prints log records as lines of text.
type logHandler struct {
	say   func(text string)
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
	b.WriteString(" " + group + a.Key + "=" + Shown(v.String()))
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	var b strings.Builder
	for _, a := range attrs {
		writeAttr(&b, h.group, a)
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

// ContendingLogger is for a client that contends for the lock again and again. It prints why and when the client
// does so next, and other warnings. What runs the command prints losses.
func (v *Voice) ContendingLogger() *slog.Logger {
	if v.Verbose {
		return v.Logger()
	}
	return slog.New(&electionLog{logHandler{least: slog.LevelWarn, say: v.NoteText}})
}

// electionLog prints the log records of a candidate's client.
type electionLog struct{ logHandler }

func (h *electionLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "lease lost" {
		return nil
	}
	if r.Message != "contending again" {
		return h.logHandler.Handle(ctx, r)
	}
	var why slog.Value
	var pause time.Duration
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "err":
			why = a.Value
		case "pause":
			pause = a.Value.Duration()
		}
		return true
	})
	h.say(fmt.Sprintf("%v: contending again in %s", why, Brief(pause)))
	return nil
}
