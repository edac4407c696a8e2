package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/stories"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
)

const (
	allStories = "all"
	// atOnce is how many stories are played at the same time. They wait for
	// TTLs most of the time.
	atOnce = 4
)

// labRunCommand is "lab run".
func labRunCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "run STORY|all",
		Short: "Replay a failure on a weak design and on Leasehold",
		Long: `Replays a well-known failure of distributed locks: first on the design that is known
for it, which has to fail, then on Leasehold's. "leasehold lab list" lists the
stories; "all" replays them all.

Servers are processes of Redis, and in two stories of ZooKeeper and etcd, that it starts
and ends on the loopback interface. "all" leaves out these two if their server, or a
version of it that has the defect, is not installed. Clients are processes that it
kills (SIGKILL) and stops (SIGSTOP). A proxy between them delays traffic. The output
says if something is modelled. It touches no other servers and processes.

Each line has the time in seconds, the actor, and what it did; a line that begins
with "!" is a fault. A part ends with one of
  FAILED   the weak design did what a lock must not do
  HELD     the lock did its job
  GUARDED  the lock could not prevent it; the resource, which checks the fencing
           token, refused the late write
  BROKEN   neither: a bug

Exit codes: 0 the stories went as expected; 1 one did not; 125 one could not be
replayed (for example without redis-server); 128+N ended by signal N.`,
		Example: `  leasehold lab run crash
  leasehold lab run all`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c, "name one story, or %s", allStories)
			}
			if _, err := storiesOf(args[0]); err != nil {
				return usage(c, "%w", err)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return append(storyNames(), allStories), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			chosen, err := storiesOf(args[0])
			if err != nil {
				return err
			}
			return p.replay(chosen)
		},
	}
}

// storyClientCommand is the command that "lab run" starts as a client.
func storyClientCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:    "story-client",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(*cobra.Command, []string) error { return stories.Act(p.stdin, p.stdout) },
	}
}

func storyNames() (names []string) {
	for _, s := range stories.All() {
		names = append(names, s.Name)
	}
	return names
}

func storiesOf(name string) ([]stories.Story, error) {
	if name == allStories {
		return stories.All(), nil
	}
	if s, ok := stories.Find(name); ok {
		return []stories.Story{s}, nil
	}
	return nil, fmt.Errorf("there is no story %s: there are %s", voice.Shown(name), strings.Join(storyNames(), ", "))
}

// leftOut is the verdict on a story that needs what is not installed.
const leftOut = "left-out"

// result is how one story went.
type result struct {
	name, verdict string
	trouble       string // why the verdict is not "pass"
}

// telling is one story in progress.
type telling struct {
	stories.Story
	events chan stories.Event // closed when it is over
	err    error              // set before
}

// replay runs "lab run".
func (p *program) replay(chosen []stories.Story) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx, stop := listen().during(ctx)
	all := play(ctx, chosen, func() *exec.Cmd { return exec.Command(exe, "lab", "story-client") })
	verdict := "pass"
	var told []result
	var unprinted error
	for _, t := range all {
		one, err := p.tellStory(t)
		if one.verdict == leftOut && len(all) == 1 {
			one.verdict = "trouble" // it was asked for
		}
		if unprinted == nil && err != nil {
			unprinted = err // the stories go on to their ends, and clean up
			cancel()
		}
		if one.verdict != "pass" && one.verdict != leftOut && verdict != "fail" {
			verdict = one.verdict
		}
		told = append(told, one)
	}
	sig := stop()
	switch {
	case sig != 0:
		return endedBy(sig)
	case unprinted != nil:
		return unprinted
	}
	if err := p.sumUp(verdict, told); err != nil {
		return err
	}
	switch verdict {
	case "fail":
		return &exitError{code: codeViolation}
	case "trouble":
		return &exitError{code: codeTrouble}
	}
	return nil
}

// play plays stories, a few at a time.
func play(ctx context.Context, chosen []stories.Story, command func() *exec.Cmd) []*telling {
	all := make([]*telling, len(chosen))
	for i, s := range chosen {
		all[i] = &telling{Story: s, events: make(chan stories.Event, 1024)}
	}
	places := make(chan struct{}, atOnce)
	go func() {
		for _, t := range all {
			places <- struct{}{}
			go func() {
				t.err = t.Run(ctx, stories.Config{Command: command, Tell: func(e stories.Event) { t.events <- e }})
				close(t.events)
				<-places
			}()
		}
	}()
	return all
}

// tellStory prints one story while it is played, and returns its result. The error is
// that of printing.
func (p *program) tellStory(t *telling) (one result, err error) {
	one = result{name: t.Name, verdict: "pass"}
	err = t.Print(p.stdout)
	for e := range t.events {
		if err == nil {
			_, err = io.WriteString(p.stdout, coloured(screen.ColoursOn(p.stdout), e))
		}
	}
	if t.err != nil {
		one.verdict, one.trouble = "trouble", voice.Safe(t.err.Error())
		switch {
		case errors.Is(t.err, stories.ErrNotAsTold):
			one.verdict = "fail"
		case errors.Is(t.err, stories.ErrLeftOut):
			one.verdict = leftOut
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(p.stdout)
	}
	return one, err
}

// coloured returns the text of an event, with its outcome in colour.
func coloured(in screen.Colours, e stories.Event) string {
	text, word := e.Text(), strings.ToUpper(string(e.Outcome))
	if e.Kind != stories.End || word == "" {
		return text
	}
	colour := in.Green
	if e.Outcome == stories.Failed || e.Outcome == stories.Broken {
		colour = in.Red
	}
	return strings.Replace(text, word, colour(word), 1)
}

// verdictIn colours the word that a line begins with: PASS, FAIL or NONE.
func verdictIn(in screen.Colours, line string) string {
	for word, colour := range map[string]func(string) string{"PASS": in.Green, "FAIL": in.Red, "NONE": in.Yellow} {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return colour(word) + rest
		}
	}
	return line
}

// sumUp prints the verdict.
func (p *program) sumUp(verdict string, told []result) error {
	seen := map[string]bool{} // what is missing is missing for all
	for _, s := range told {
		if reason := strings.TrimPrefix(s.trouble, s.name+": "); s.trouble != "" && !seen[reason] {
			seen[reason] = true
			if s.verdict == leftOut {
				p.voice.Note("left out: %s", s.trouble)
				continue
			}
			p.voice.Error("%s", s.trouble)
		}
	}
	var names []string // of those the verdict speaks of
	for _, s := range told {
		if s.verdict == verdict {
			names = append(names, s.name)
		}
	}
	line := map[string]string{"pass": "PASS: as expected", "fail": "FAIL: not as expected", "trouble": "NONE: could not be replayed"}[verdict]
	_, err := fmt.Fprintf(p.stdout, "%s: %d of %d (%s)\n", verdictIn(screen.ColoursOn(p.stdout), line), len(names), len(told), strings.Join(names, ", "))
	return err
}
