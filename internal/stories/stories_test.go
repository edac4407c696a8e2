package stories

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// clientVar makes the test binary a client process.
const clientVar = "LEASEHOLD_STORIES_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(clientVar) != "" {
		if err := Act(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// command starts this test binary as a client.
func command() *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), clientVar+"=1")
	c.Stderr = os.Stderr
	return c
}

// Every story goes as it is told: the weak design fails, ours does not.
func TestStories(t *testing.T) {
	for _, s := range All() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			c := Config{Command: command, Tell: func(e Event) { t.Logf("%s %6d %-8s %s %s", e.Part, e.At, e.Who, e.What, e.Outcome) }}
			if err := s.Run(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
}
