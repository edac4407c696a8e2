package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// voice prints what the command has to say, a line at a time, without ever
// making the speaker wait: who speaks may be about to stop a command whose
// lease is lost, while nobody reads our pipe or somebody has pressed Ctrl-S.
// Its methods are safe for concurrent use.
//
// On a terminal it also keeps one line that is overwritten: the status.
type voice struct {
	quiet, verbose bool // set once, before anything is said

	w      *os.File
	screen bool // w is a terminal that knows how to erase a line
	queue  chan utterance
}

// utterance is one thing to write.
type utterance struct {
	text    string
	status  bool          // overwrites the status
	written chan struct{} // closed when all before it was written
}

func newVoice(w *os.File) *voice {
	v := &voice{w: w, queue: make(chan utterance, 256)}
	v.screen = term.IsTerminal(int(w.Fd())) && os.Getenv("TERM") != "dumb"
	go v.speak()
	return v
}

// error is printed in any case.
func (v *voice) error(format string, args ...any) { v.say(format, args...) }

// note is printed unless quiet was asked for.
func (v *voice) note(format string, args ...any) {
	if !v.quiet {
		v.say(format, args...)
	}
}

// status shows text in the line that is overwritten, in place of what it
// showed. An empty text takes the line away. It prints nothing where there is
// no such line. A terminal is narrow, so our name is not in front of it.
func (v *voice) status(text string) {
	if v.screen && !v.quiet {
		v.put(utterance{text: safe(text), status: true})
	}
}

const prefix = "leasehold: "

func (v *voice) say(format string, args ...any) {
	v.put(utterance{text: prefix + safe(fmt.Sprintf(format, args...))})
}

// put drops what cannot be written, rather than wait.
func (v *voice) put(u utterance) {
	select {
	case v.queue <- u:
	default:
	}
}

// speak writes. It is the only one that may have to wait.
func (v *voice) speak() {
	shown := false // there is a status
	for u := range v.queue {
		if shown && u.written == nil {
			v.w.WriteString("\r\x1b[K")
			shown = false
		}
		switch {
		case u.written != nil:
			close(u.written)
		case !u.status:
			v.w.WriteString(u.text + "\n")
		case u.text != "":
			v.w.WriteString(v.cut(u.text))
			shown = true
		}
	}
}

// cut shortens a status to less than the terminal's width: a line that wraps
// cannot be overwritten.
func (v *voice) cut(s string) string {
	width, _, err := term.GetSize(int(v.w.Fd()))
	if err != nil || width < 1 {
		width = 80
	}
	if utf8.RuneCountInString(s) < width {
		return s
	}
	return string([]rune(s)[:max(width-1, 0)])
}

// flush waits until everything said so far was written, for as long as that.
func (v *voice) flush(patience time.Duration) {
	written := make(chan struct{})
	v.put(utterance{written: written})
	select {
	case <-written:
	case <-time.After(patience):
	}
}

var (
	credentials = regexp.MustCompile(`://\S*@`)
	// example is a URL that shows where credentials go, in our own words.
	example = regexp.MustCompile(`(^|\s)rediss?(-sentinel|-cluster)?://(USER)?:PASSWORD@(HOST|SENTINEL)\b`)
)

// safe takes out of a message the credentials of whatever URL found its way
// into it, and what a terminal would act on.
func safe(s string) string {
	// The words of an example are put aside, in characters that do not survive
	// below.
	s = example.ReplaceAllStringFunc(strings.ReplaceAll(s, "\x00", "?"), func(e string) string { return strings.NewReplacer("://", "\x00", "@", "\x00\x00").Replace(e) })
	s = credentials.ReplaceAllString(s, "://***@")
	s = strings.NewReplacer("\x00\x00", "@", "\x00", "://").Replace(s)
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '?'
		}
		return r
	}, s)
}
