// Command prove prints what is to be proved about the protocols, runs a solver on it, and
// fails unless each answer is the expected one. A solver that does not finish in
// time has not proved it.
//
//	go run ./internal/proof/induct/cmd/prove [-out DIR] [-solver z3] [-jobs N] [-only TEXT]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/induct"
)

// solvers are the commands that read a file of SMT-LIB, by name. The proofs need few
// instances of the quantifiers; cvc5 enumerates them, and looks for finite models.
var solvers = map[string][]string{
	"z3":   {"z3", "-smt2"},
	"cvc5": {"cvc5", "--lang=smt2", "--enum-inst"},
}

func main() {
	out := flag.String("out", "", "keep the files in this folder")
	solver := flag.String("solver", "z3", "the solver: z3 or cvc5")
	jobs := flag.Int("jobs", min(2, runtime.NumCPU()), "solvers that run at once")
	only := flag.String("only", "", "ask only questions whose words have this")
	limit := flag.Duration("timeout", 20*time.Second, "for one answer")
	unsat := flag.Bool("unsat", false, "ask only for proofs, and for no models")
	slow := flag.Duration("slow", time.Hour, "name questions that take longer")
	flag.Parse()

	dir := *out
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "prove"); err != nil {
			fail(err)
		}
		defer os.RemoveAll(dir)
	} else if err := os.MkdirAll(dir, 0o777); err != nil {
		fail(err)
	}
	asked, right := map[induct.Kind]int{}, map[induct.Kind]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, *jobs)
	began, i := time.Now(), 0
	for _, spec := range induct.Specs() {
		for _, q := range spec.Questions() {
			if !strings.Contains(q.Words, *only) || *unsat && q.Want != "unsat" {
				continue
			}
			i++
			file := filepath.Join(dir, fmt.Sprintf("%04d-%s.smt2", i, q.Kind))
			if err := os.WriteFile(file, []byte("; "+q.Words+"\n; expected: "+q.Want+"\n"+q.SMT), 0o666); err != nil {
				fail(err)
			}
			asked[q.Kind]++
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				start := time.Now()
				answer := ask(solvers[*solver], file, *limit)
				took := time.Since(start)
				mu.Lock()
				defer mu.Unlock()
				if answer == q.Want {
					right[q.Kind]++
				} else {
					fmt.Printf("FAILED: %s: %s answers %s, not %s (%v)\n", q.Words, *solver, answer, q.Want, took.Round(time.Millisecond))
				}
				if took > *slow {
					fmt.Printf("slow: %s: %s after %v\n", q.Words, answer, took.Round(time.Millisecond))
				}
			})
		}
	}
	wg.Wait()
	wrong := 0
	for k, n := range asked {
		wrong += n - right[k]
	}
	fmt.Printf("%s, %.0f s: %d of %d clauses are needed, %d of %d steps and states are possible, %d of %d runs exist, %d of %d of them only with the change\n",
		*solver, time.Since(began).Seconds(), right[induct.Necessity], asked[induct.Necessity], right[induct.Possible], asked[induct.Possible],
		right[induct.Reachable], asked[induct.Reachable], right[induct.Impossible], asked[induct.Impossible])
	fmt.Printf("%d obligations, %d proved; %d mutants, %d refuted\n",
		asked[induct.Obligation], right[induct.Obligation], asked[induct.Mutation], right[induct.Mutation])
	if wrong > 0 {
		os.Exit(1)
	}
}

// ask returns the solver's answer: sat, unsat, or why there is none.
func ask(solver []string, file string, limit time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, solver[0], append(solver[1:len(solver):len(solver)], file)...).CombinedOutput()
	first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	answer := string(first)
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("nothing within %v", limit)
	case errors.Is(err, exec.ErrNotFound):
		return "nothing: it is not installed (scripts/ensure-z3.sh)"
	case err != nil && answer == "":
		return err.Error()
	}
	return answer
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "prove:", err)
	os.Exit(1)
}
