package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/built"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
)

// A documentedBlock is a block of code that a document marks, in the line before it, as
// commands to run, as the text of a file, or as a part of a script of the command's tests.
type documentedBlock struct {
	file    string // the file's name, or ""
	session string // the script's name, or ""
	text    string
}

// documented returns the marked blocks of a document, in their order.
func documented(text []byte) []documentedBlock {
	var blocks []documentedBlock
	marked := regexp.MustCompile("(?s)<!-- (?:run(?:: (?:redis|zookeeper|majority))?|file: ([\\w.-]+)|session: ([\\w/-]+)) -->\n```\\w+\n(.*?)```")
	for _, m := range marked.FindAllSubmatch(text, -1) {
		blocks = append(blocks, documentedBlock{file: string(m[1]), session: string(m[2]), text: string(m[3])})
	}
	return blocks
}

// runDocumented runs a script as a user's shell does, and fails the test unless the script
// succeeds and all of its echo commands were reached.
func runDocumented(t *testing.T, script, dir string, env []string) {
	t.Helper()
	for _, tool := range []string{"jq", "curl"} {
		if _, err := exec.LookPath(tool); err != nil && strings.Contains(script, tool+" ") {
			t.Fatalf("this page uses %s: install it, such as with apt-get install %[1]s", tool)
		}
	}
	const end = "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n" // of what a failed script has left running
	c := exec.Command("sh", "-eu", "-c", end+script+"wait\n")
	c.Dir, c.Env, c.WaitDelay = dir, env, time.Minute
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\nfailed: %v\n%s", script, err, out)
	}
	t.Logf("%s\n%s", script, out)
	for _, say := range regexp.MustCompile(`echo ["']?([A-Za-z][\w ]+)`).FindAllStringSubmatch(script, -1) {
		if !strings.Contains(string(out), strings.TrimSpace(say[1])) {
			t.Errorf("%s\ndid not print %q", script, say[1])
		}
	}
}

// The commands of the pages in docs work as written, for a user without any state, in an
// empty directory, with leasehold installed. What a block exports is set in later blocks of its
// page. The test replaces localhost:6379 and localhost:2181 by servers of its own, other ports by
// free ones, and the clone in $HOME by this one. The commands of a page that needs a majority find
// three servers in their environment. The command's tests run the commands of docs/stories.md, and
// the sessions whose output a page shows.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel() // it mostly waits
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	leasehold, err := built.Command(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(leasehold)
	toRun := 0
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := documented(text)
		if len(blocks) == 0 || page == filepath.FromSlash("docs/stories.md") {
			continue
		}
		toRun += len(blocks)
		t.Run(page, func(t *testing.T) {
			dir, exports := t.TempDir(), ""
			ours := []string{"$HOME/leasehold", here}
			if strings.Contains(string(text), "<!-- run: redis -->") {
				_, port, _ := strings.Cut(redistest.Start(t).Addr(), ":")
				ours = append(ours, "localhost:6379", "127.0.0.1:"+port, "6379", port)
			}
			if strings.Contains(string(text), "<!-- run: zookeeper -->") {
				server, err := zktest.Launch(zktest.Options{Settings: []string{"maxSessionTimeout=60000"}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(server.Close)
				ours = append(ours, "localhost:2181", server.Addr)
			}
			for _, p := range []string{"7001", "7002", "7003", "7004", "7005", "7420", "8080"} {
				if !strings.Contains(string(text), p) {
					continue
				}
				free, err := port.Pick()
				if err != nil {
					t.Fatal(err)
				}
				ours = append(ours, p, strconv.Itoa(free))
				t.Cleanup(func() {
					if p != "7420" && p != "8080" {
						exec.Command("redis-cli", "-p", strconv.Itoa(free), "shutdown", "nosave").Run()
					}
				})
			}
			replaced := strings.NewReplacer(ours...)
			env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
			if strings.Contains(string(text), "<!-- run: majority -->") {
				servers := redistest.Start(t).Addr() + "," + redistest.Start(t).Addr() + "," + redistest.Start(t).Addr()
				env = append(env, "LEASEHOLD_STORE=redis://"+servers)
				runDocumented(t, "leasehold bootstrap\n", dir, env)
			}
			for _, b := range blocks {
				if b.session != "" {
					checkSession(t, b)
					continue
				}
				if b.file != "" {
					writeFile(t, filepath.Join(dir, b.file), replaced.Replace(b.text))
					continue
				}
				script := replaced.Replace(b.text)
				runDocumented(t, exports+script, dir, env)
				for _, line := range regexp.MustCompile(`(?m)^export .*\n`).FindAllString(script, -1) {
					exports += line
				}
			}
		})
	}
	if toRun < 10 {
		t.Errorf("%d marked blocks found in the pages, want 10 at least", toRun)
	}
}

// checkSession fails the test unless a script of the command's tests has the commands of a session,
// in their order, and after each the lines that a page shows as its output: as patterns that match
// the whole line, or as an exit code. A variable of the script stands for any word.
func checkSession(t *testing.T, b documentedBlock) {
	t.Helper()
	text, err := os.ReadFile(script("TestScripts", b.session))
	if err != nil {
		t.Fatal(err)
	}
	steps, _, _ := strings.Cut(string(text), "\n-- ")
	rest := strings.Split(steps, "\n")
	ofCommand := rest // the steps after the last command
	find := func(in []string, line string, matches func(step string) bool) []string {
		i := slices.IndexFunc(in, matches)
		if i < 0 {
			t.Fatalf("the script %s does not have, after what stands before in this session: %s", b.session, line)
		}
		return in[i+1:]
	}
	variable := regexp.MustCompile(`'?\$[A-Z]+'?`)
	output := regexp.MustCompile(`^(?:stdout|stderr|says \w+) '(\^.*\$)'$`)
	asked := false // for the exit code
	for line := range strings.Lines(b.text) {
		line = strings.TrimSuffix(line, "\n")
		typed, ok := strings.CutPrefix(line, "$ ")
		switch {
		case typed == "echo $?":
		case ok:
			rest = find(rest, line, func(step string) bool {
				step = regexp.MustCompile(`^! | &\w+&$`).ReplaceAllString(step, "")
				words := strings.Join(variable.Split(step, -1), "\x00")
				return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(words), "\x00", `\S+`) + "$").MatchString(typed)
			})
			ofCommand = rest
		case asked:
			find(ofCommand, line, regexp.MustCompile(`^(exit|ends \w+) `+line+`$`).MatchString)
		default:
			rest = find(rest, line, func(step string) bool {
				m := output.FindStringSubmatch(step)
				return m != nil && regexp.MustCompile(variable.ReplaceAllString(m[1], `\S+`)).MatchString(line)
			})
		}
		asked = typed == "echo $?"
	}
}

// script returns the path of a script of the command's tests, or "".
func script(test, name string) string {
	path := filepath.Join("cmd/leasehold/internal/cli/testdata", map[string]string{"TestScriptsOnStores": "stores"}[test], name+".txtar")
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
