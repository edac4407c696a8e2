package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each cell of docs/comparison.md has a source: a link to a fixed version of the other
// project, one of our tests, or our list of guarantees.
func TestComparisonCellsHaveSources(t *testing.T) {
	text, err := os.ReadFile("docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := tests(t)
	cells := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| |") || strings.HasPrefix(line, "| ---") {
			continue
		}
		columns := strings.Split(strings.Trim(line, "|"), "|")
		for _, cell := range columns[1:] {
			cells++
			links := regexp.MustCompile(`\]\((https://\S+) "[^"]+"\)`).FindAllStringSubmatch(cell, -1)
			ours := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(cell, -1)
			if len(links)+len(ours) == 0 && !strings.Contains(cell, "](guarantees.md)") {
				t.Errorf("no source for %q of %s", strings.TrimSpace(cell), columns[0])
			}
			for _, l := range links {
				if !regexp.MustCompile(`^https://github\.com/[\w-]+/[\w-]+/blob/(v\d|api/v\d|redisson-\d|shedlock-parent-\d|[0-9a-f]{40}/)`).MatchString(l[1]) {
					t.Errorf("%q links to no fixed version: %s", strings.TrimSpace(cell), l[1])
				}
			}
			for _, test := range ours {
				if exists[test[1]] == nil {
					t.Errorf("%q names %s, but there is no such test", strings.TrimSpace(cell), test[1])
				}
			}
		}
	}
	if cells < 140 {
		t.Errorf("%d cells found, want 140 at least: does the pattern still match?", cells)
	}
}

// Every file and every heading that a page links to exists.
func TestLinksBetweenPages(t *testing.T) {
	pages := []string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	links := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s#]*)(?:#([\w-]+))?\)`).FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			target := page
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
			} else if m[2] != "" && !anchors(t, target)[m[2]] {
				t.Errorf("%s links to #%s, which %s does not have", page, m[2], target)
			}
		}
	}
	if len(pages) < 15 || links < 30 {
		t.Errorf("%d pages with %d links found, want 15 and 30 at least: does the pattern still match?", len(pages), links)
	}
}

// Each answer to a question cites the threads in which it was asked.
func TestLinksBetweenQuestionsAndThreads(t *testing.T) {
	text, err := os.ReadFile("docs/faq.md")
	if err != nil {
		t.Fatal(err)
	}
	questions := strings.Split(string(text), "\n### ")[1:]
	if len(questions) < 20 {
		t.Errorf("%d questions found, want 20 at least", len(questions))
	}
	for _, q := range questions {
		title, answer, _ := strings.Cut(q, "\n")
		threads := regexp.MustCompile(`\[([\w.-]+)#(\d+)\]\(https://github\.com/[\w-]+/([\w.-]+)/(?:issues|pull)/(\d+)\)`).FindAllStringSubmatch(answer, -1)
		if len(threads) == 0 {
			t.Errorf("docs/faq.md: %q cites no thread", title)
		}
		for _, m := range threads {
			if m[1] != m[3] || m[2] != m[4] {
				t.Errorf("docs/faq.md: %s#%s links to %s#%s", m[1], m[2], m[3], m[4])
			}
		}
	}
}

// anchors returns the names by which links can point to the headings of a page.
func anchors(t *testing.T, page string) map[string]bool {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}
