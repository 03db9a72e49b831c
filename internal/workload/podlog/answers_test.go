package podlog

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseAnswers checks the limits of answers and their errors.
func TestParseAnswers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "[]": "", "- {stdout: a}": "", `[{"command":["a"],"exitCode":255}]`: "",
		"- {local: {}}":                        `unknown field "local"`,
		"- {exitCode: 256}":                    "answer 0: the exit code 256 is not between 0 and 255",
		"- {exitCode: -1}":                     "answer 0: the exit code -1 is not between 0 and 255",
		"{stdout: a}":                          "is no list of answers",
		"- {a: 1, a: 2}":                       "already set",
		"- {command: [1, 2]}":                  "is no list of answers",
		strings.Repeat("- {}\n", maxAnswers+1): "has 101 answers, more than 100",
		"- {command: [" + strings.Repeat("a,", maxArguments) + "a]}": "has 101 arguments, more than 100",
	} {
		_, err := parseAnswers(text)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// TestFind checks which commands an answer is for. The first that fits counts.
func TestFind(t *testing.T) {
	t.Parallel()
	all := []answer{
		{Command: []string{"a"}, ExitCode: 1}, {Command: []string{"a", "*"}, ExitCode: 2},
		{Command: []string{"b", "..."}, ExitCode: 3}, {Command: []string{"c", "*", "d"}, ExitCode: 4},
		{Command: []string{"a", "b", "..."}, ExitCode: 5},
	}
	for command, want := range map[string]int{
		"a": 1, "a x": 2, "a b": 2, "a b c": 5, "b": 3, "b x y": 3, "c x d": 4, "c d": notFound, "c x y": notFound,
		"x": notFound, "*": notFound,
	} {
		if got := find(all, strings.Fields(command)).ExitCode; got != want {
			t.Errorf("%s: %d, want %d", command, got, want)
		}
	}
	if got := find(append(all, answer{ExitCode: 9}), []string{"x"}).ExitCode; got != 9 {
		t.Errorf("an answer for every command: %d", got)
	}
	if !(&answer{Command: []string{"..."}}).matches([]string{"x", "y"}) {
		t.Error("only any arguments")
	}
}

// FuzzParseAnswers parses any text without a panic, within the bounds.
func FuzzParseAnswers(f *testing.F) {
	f.Add("- command: [a, '*', ...]\n  stdout: x\n")
	f.Add("- &a {stdout: x}\n- *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		if all, err := parseAnswers(text); err == nil && len(all) > maxAnswers {
			t.Errorf("%d answers", len(all))
		}
	})
}
