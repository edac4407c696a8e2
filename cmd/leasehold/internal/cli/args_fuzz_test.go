package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

// FuzzArgs gives the command any arguments, one a line, up to where it would
// begin to do something. Whatever it accepts is within the limits it states.
func FuzzArgs(f *testing.F) {
	for _, args := range []string{
		"run\nbackup\n--\ntar\nczf",
		"run\nbackup\n--ttl\n30s\n--grace=3s\n--wait\n1m\n--purpose\n\x1b[2J\n--\nx",
		"run\n--try\n-E\n0\n-qv\nname\n--\n--\n--ttl",
		"run\nn\n--ttl=2562047h\n--max-hold=2562047h47m16.854775807s\n--min-hold=-1ns\n--\nx",
		"run\nn\n--ttl=100ms\n--grace=50ms\n--\nx", "run\nn\n--max-hold=0\n--\nx", "run\nn\n-E256\n--\nx", "run\nn\n--ttl=9223372036854775808ns\n--\nx",
		"ls\n--json\npre", "ls\na\nb", "show\nx\n--exit-code", "show", "--version", "help\nrun", "help\nno", "--help", "-h", "",
		"--store\nredis://u:pw@h\nls", "--store=file:/x?shared=true\nls", "--store=hunter2\nls", "--store=reddis://:pw@h\nls", "--store=file:%zz\nls", "--store=\nls",
		"completion\nbash", "completion\nno", "lab", "lab\nrun\nall", "lab\nrun\nx", "no-such-command\n-x", "run\n\n--\nx", "--\nrun", "run\n--\n-x\n--\ny", "run\n--try\n--\n-x\n--", "run\n--purpose\n--\nx\n--\ny", "-\x00", "--store-file\n/dev/zero\nls",
	} {
		f.Add(args)
	}
	for _, name := range []string{storeVar, storeFileVar} {
		f.Setenv(name, "") // restores it when the test is over
		os.Unsetenv(name)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { null.Close() })

	f.Fuzz(func(t *testing.T, lines string) {
		args := strings.Split(lines, "\n")
		if strings.HasPrefix(args[0], "__complete") { // looks at stores
			return
		}
		p := &program{stdin: null, stdout: null, stderr: null, voice: voice.New(null)}
		root := p.root()
		var asked *cobra.Command
		only(root, func(c *cobra.Command) { asked = c })
		root.SetArgs(args)
		if err := root.Execute(); err != nil {
			if err.Error() == "" {
				t.Errorf("%q: the error is empty, want a text", args)
			}
			return
		}
		if asked == nil {
			return
		}
		if !asked.Flags().Changed("store-file") { // files are not read here
			where(t, p, asked)
		}
		if asked.CommandPath() == "leasehold run" {
			accepted(t, args)
		}
	})
}

// only replaces what our own commands do: they only report to told that they were called.
func only(root *cobra.Command, told func(*cobra.Command)) {
	for _, c := range root.Commands() {
		if c.Name() != "completion" && c.Name() != "help" {
			c.ValidArgsFunction = nil
			if c.RunE != nil {
				c.RunE = func(c *cobra.Command, _ []string) error {
					told(c)
					return nil
				}
			}
			only(c, told)
		}
	}
}

// where checks the store that the arguments choose. It does not print a URL that it cannot parse,
// which could be a secret.
func where(t *testing.T, p *program, c *cobra.Command) {
	t.Helper()
	urls, _, err := p.where.urls(c)
	if err != nil && strings.TrimSpace(p.where.url) == "" && strings.Contains(err.Error(), "--store is empty") {
		return
	}
	if err != nil || len(urls) != 1 {
		t.Errorf("urls %q, %v, want one URL", urls, err)
		return
	}
	if _, err := schemeOf(urls); err != nil {
		if _, secret, ok := strings.Cut(urls[0], ":"); ok && len(secret) > 20 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error shows %q, want it hidden: %v", urls[0], err)
		}
		return
	}
}

// accepted parses the arguments of run once more, with the flags in hand.
func accepted(t *testing.T, args []string) {
	t.Helper()
	p := &program{voice: &voice.Voice{}}
	o := runFlags{ttl: leasehold.DefaultTTL, busyCode: codeBusy}
	root := p.root()
	c := &cobra.Command{Use: "run", RunE: func(c *cobra.Command, args []string) error {
		name, command, err := splitArgs(c, args)
		if err != nil {
			return err
		}
		if store.CheckName(name) != nil || len(command) == 0 {
			t.Errorf("accepted name %q, command %q, want a valid name and a command", name, command)
		}
		lock, budget, err := o.settle(c, command[0])
		if err != nil {
			return err
		}
		if lock.TTL < leastTTL || lock.MaxHold < 0 || lock.MaxHold > 0 && lock.MaxHold < leastTTL || lock.MinHold < 0 || o.wait < 0 {
			t.Errorf("accepted times %+v, want times within their bounds", lock)
		}
		if lock.Notice <= 0 || lock.Notice >= lock.TTL || budget.Grace < 0 || budget.Slack <= 0 {
			t.Errorf("accepted %+v with budget %+v, want times that fit the TTL", lock, budget)
		}
		if o.try && o.wait != 0 || o.busyCode < 0 || o.busyCode > 255 {
			t.Errorf("accepted %+v, want a valid wait and exit code", o)
		}
		return nil
	}}
	o.add(c.Flags())
	for _, old := range root.Commands() {
		if old.Name() == "run" {
			root.RemoveCommand(old)
		}
	}
	root.AddCommand(c)
	root.SetArgs(args)
	_ = root.Execute() // what is not accepted need not be
}
