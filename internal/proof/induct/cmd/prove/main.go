// Command prove prints what is to be proved about the protocols, runs solvers on it, and
// fails unless each answer is the expected one. A solver that does not finish in time has
// not proved it. It asks z3, and cvc5, too, if that is installed.
//
//	go run ./internal/proof/induct/cmd/prove [-out DIR] [-only TEXT] [-timeout D] [-jobs N]
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/induct"
)

// solvers are commands that read a file of SMT-LIB. The proofs need few instances of
// the quantifiers, which cvc5 finds by enumeration.
var solvers = [][]string{
	{"z3", "-smt2"},
	{"cvc5", "--lang=smt2", "--enum-inst"},
}

func main() {
	out := flag.String("out", "", "keep the files in this folder")
	only := flag.String("only", "", "ask only questions whose words have this")
	limit := flag.Duration("timeout", 30*time.Second, "for one answer")
	jobs := flag.Int("jobs", 2, "solvers that run at once")
	flag.Parse()

	dir, err := *out, error(nil)
	if dir == "" {
		dir, err = os.MkdirTemp("", "prove")
		defer os.RemoveAll(dir)
	} else {
		err = os.MkdirAll(dir, 0o777)
	}
	var found [][]string
	for _, s := range solvers {
		if _, err := exec.LookPath(s[0]); err == nil {
			found = append(found, s)
		}
	}
	if err != nil || len(found) == 0 {
		fmt.Fprintln(os.Stderr, "prove: no solver (scripts/ensure-z3.sh installs z3), or no folder for the files:", err)
		os.Exit(2)
	}
	r := report{asked: map[induct.Kind]int{}, right: map[induct.Kind]int{}, took: map[string]time.Duration{}}
	var wg sync.WaitGroup
	slots := make(chan struct{}, *jobs)
	for i, q := range induct.Questions() {
		if !strings.Contains(q.Words, *only) {
			continue
		}
		file := filepath.Join(dir, fmt.Sprintf("%04d-%s.smt2", i, q.Kind))
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := os.WriteFile(file, []byte("; "+q.Words+"\n; expected: "+q.Want+"\n"+q.SMT()), 0o666); err != nil {
				fmt.Fprintln(os.Stderr, "prove:", err)
				os.Exit(2)
			}
			r.add(q, found, file, *limit)
		})
	}
	wg.Wait()
	if !r.print(found) {
		os.Exit(1)
	}
}

// report is what the solvers answered.
type report struct {
	sync.Mutex
	asked, right map[induct.Kind]int
	took         map[string]time.Duration
}

// add asks the solvers a question. All must give the expected answer.
func (r *report) add(q induct.Question, solvers [][]string, file string, limit time.Duration) {
	right := 1
	for _, solver := range solvers {
		answer, took := ask(solver, file, limit)
		r.Lock()
		if r.took[solver[0]] += took; answer != q.Want {
			right = 0
			fmt.Printf("FAILED: %s: %s answers %s, not %s (%v)\n", q.Words, solver[0], answer, q.Want, took.Round(time.Millisecond))
		}
		r.Unlock()
	}
	r.Lock()
	defer r.Unlock()
	r.asked[q.Kind]++
	r.right[q.Kind] += right
}

// print prints the figures, and reports whether all answers were the expected ones.
func (r *report) print(solvers [][]string) bool {
	good := true
	for k, n := range r.asked {
		good = good && r.right[k] == n
	}
	for _, s := range solvers {
		fmt.Printf("%s took %.0f s of a processor\n", s[0], r.took[s[0]].Seconds())
	}
	of := func(k induct.Kind) string { return fmt.Sprintf("%d of %d", r.right[k], r.asked[k]) }
	fmt.Printf("%s clauses are needed, %s steps and states are possible, %s runs exist, %s runs of mutants only with the change\n",
		of(induct.Necessity), of(induct.Possible), of(induct.Reachable), of(induct.Impossible))
	fmt.Printf("%d obligations, %d proved; %d mutants, %d refuted\n",
		r.asked[induct.Obligation], r.right[induct.Obligation], r.asked[induct.Mutation], r.right[induct.Mutation])
	return good
}

// ask returns the solver's answer: sat, unsat, or why there is none, and the processor's time
// that it took.
func ask(solver []string, file string, limit time.Duration) (string, time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, solver[0], append(solver[1:len(solver):len(solver)], file)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	took := time.Duration(0)
	if p := cmd.ProcessState; p != nil {
		took = p.UserTime() + p.SystemTime()
	}
	answer, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	switch {
	case ctx.Err() != nil:
		return fmt.Sprintf("nothing within %v", limit), took
	case err != nil && len(answer) == 0:
		return err.Error(), took
	}
	return string(answer), took
}
