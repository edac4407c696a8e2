package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The tests that docs/evidence.md names as proof must exist, and the scripts of the command. They
// stand as in "go test -run", with two slashes where each store runs them.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	exists := tests(t)
	text, err := os.ReadFile("docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)(?:/([\\w/-]+))?`").FindAllSubmatch(text, -1)
	if len(named) < 20 {
		t.Errorf("%d tests named in docs/evidence.md, want 20 at least: does the pattern still match?", len(named))
	}
	for _, m := range named {
		if exists[string(m[1])] == nil {
			t.Errorf("docs/evidence.md names %s, but there is no such test", m[1])
		}
		if name := strings.TrimPrefix(string(m[2]), "/"); name != "" && script(string(m[1]), name) == "" {
			t.Errorf("docs/evidence.md names %s, but there is no such script", m[0])
		}
	}
}

// A user can read what is promised in one go, and begins with what is not. A promise in the
// evidence is a short line with few tests.
func TestGuaranteesNameOnePromiseALine(t *testing.T) {
	promises, err := os.ReadFile("docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	if n, most := len(strings.Fields(string(promises))), 1300; n > most {
		t.Errorf("docs/guarantees.md has %d words, want %d at most: move details to docs/limits.md", n, most)
	}
	if first := regexp.MustCompile(`(?m)^## (.*)$`).FindSubmatch(promises); first == nil || string(first[1]) != "What is not promised" {
		t.Error("docs/guarantees.md does not begin with what is not promised")
	}
	evidence, err := os.ReadFile("docs/evidence.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(evidence)) {
		m := regexp.MustCompile("^\\| (.*) \\| (`(?:Test|Fuzz)[\\w/-]+`.*) \\|\n$").FindStringSubmatch(line)
		if m == nil {
			continue
		}
		lines++
		if len(m[1]) > 240 {
			t.Errorf("a line of docs/evidence.md has %d bytes, want 240 at most: split %q", len(m[1]), m[1])
		}
		if n := strings.Count(m[2], "`Test") + strings.Count(m[2], "`Fuzz"); n > 8 {
			t.Errorf("a line of docs/evidence.md has %d tests, want 8 at most: split %q", n, m[1])
		}
	}
	if lines < 400 {
		t.Errorf("%d promises in docs/evidence.md, want 400 at least: does the pattern still match?", lines)
	}
}

// The runbook says what to do about each alert, each exit code and each finding of the doctor,
// and about no others. Each of its sections answers the same questions.
func TestLinksBetweenRunbookAndCodes(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	page := read("docs/runbook.md")
	tables, sections, _ := strings.Cut(page, "\n## A lock is stuck\n")
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(tables, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(m[1], -1) {
			rows[name[1]] = true
		}
	}
	want := map[string]bool{"0": true, "1": true, "2": true} // of the doctor
	add := func(pattern string, texts ...string) {
		for _, text := range texts {
			found := regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1)
			if len(found) == 0 {
				t.Errorf("nothing matches %s", pattern)
			}
			for _, m := range found {
				want[m[1]] = true
			}
		}
	}
	add(`(?m)^\s+- alert: (\w+)$`, read("adapters/prometheus/alerts.yml"))
	add(`(?m)^\t\{"([\w-]+)", `, read("cmd/leasehold/internal/doctor/kinds.go"))
	add(`(?m)^\s+\w+ += (1\d\d)\b`, read("cmd/leasehold/internal/runner/runner.go"), read("cmd/leasehold/internal/cli/exit.go"))
	for name := range want {
		if !rows[name] {
			t.Errorf("docs/runbook.md: add `%s` to the row of one of its first tables that says what to do", name)
		}
	}
	for name := range rows {
		if !want[name] {
			t.Errorf("docs/runbook.md: a table names `%s`, but no alert, exit code or code of the doctor has that name", name)
		}
	}
	alerts := read("adapters/prometheus/alerts.yml")
	runbooks := regexp.MustCompile(`(?m)^ +runbook: docs/runbook\.md#(\S+)$`).FindAllStringSubmatch(alerts, -1)
	if n := strings.Count(alerts, "- alert: "); len(runbooks) != n {
		t.Errorf("%d of %d alerts name a section of docs/runbook.md", len(runbooks), n)
	}
	for _, m := range runbooks {
		if !anchors(t, "docs/runbook.md")[m[1]] {
			t.Errorf("an alert names the section %s, which docs/runbook.md does not have", m[1])
		}
	}
	for section := range strings.SplitSeq("A lock is stuck\n"+sections, "\n## ") {
		title, text, _ := strings.Cut(section, "\n")
		for _, question := range []string{"**What ", "**Is it dangerous?**", "**Look at**", "**Type.**", "**Do not**"} {
			if !strings.Contains(text, question) {
				t.Errorf("docs/runbook.md: %q does not answer %q", title, question)
			}
		}
	}
}

// The README can be read in one go, shows Go early, and compares Leasehold with what people know. The
// changelog of the first version lists what there is, since nothing changed from an earlier one.
func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const longest, firstGo = 120, 40
	if n := strings.Count(string(text), "\n"); n > longest {
		t.Errorf("README has %d lines, want %d at most", n, longest)
	}
	before, _, ok := strings.Cut(string(text), "\n```go\n")
	if n := strings.Count(before, "\n"); !ok || n > firstGo {
		t.Errorf("README shows Go after %d lines, want %d at most", n, firstGo)
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(string(changelog), "\n## v0.1.0\n")
	const longestFirst = 60
	if n := strings.Count(first, "\n"); n == 0 || n > longestFirst {
		t.Errorf("CHANGELOG has %d lines about the first version, want 1 to %d: what is there, not what has changed since earlier commits", n, longestFirst)
	}
	_, table, _ := strings.Cut(string(text), "\n## How it compares\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, other := range []string{"redsync", "etcd", "`consul lock`", "`flock`"} {
		if !regexp.MustCompile(`(?m)^\| \[?` + other).MatchString(table) {
			t.Errorf("README does not compare Leasehold with %s", other)
		}
	}
}

// The entry page leads to every page.
func TestEntryPageNamesEveryPage(t *testing.T) {
	text, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		name := strings.TrimPrefix(filepath.ToSlash(page), "docs/")
		if name != "README.md" && !strings.Contains(string(text), "]("+name+")") {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
	if len(pages) < 25 {
		t.Errorf("%d pages found, want 25 at least", len(pages))
	}
}

// A user knows each word of the README and the entry page: the word is explained in place, or among
// the words of the entry page.
func TestWordsAreExplained(t *testing.T) {
	text, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, words, ok := strings.Cut(string(text), "\n## Words\n")
	if !ok {
		t.Fatal("docs/README.md has no words")
	}
	for _, word := range []string{"Lease", "Owner", "TTL", "Validity", "Notice", "Fencing token", "Place", "Hand-off", "Quorum", "Quarantine", "Boot clock", "Barge"} {
		if !strings.Contains(words, "\n- **"+word+"**") {
			t.Errorf("docs/README.md does not explain %q", word)
		}
	}
}

// The commands of the README work as written. Its marked blocks run in their order, for a
// user without any state.
func TestReadmeCommands(t *testing.T) {
	t.Parallel() // it mostly waits
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("leasehold"); os.IsNotExist(err) {
		t.Cleanup(func() { os.Remove("leasehold") }) // README builds it here
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+t.TempDir())
	blocks := documented(text)
	if len(blocks) == 0 {
		t.Error("no block to run in the README")
	}
	for _, b := range blocks {
		runDocumented(t, b.text, ".", env)
	}
}
