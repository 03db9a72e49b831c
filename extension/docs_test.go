package extension_test

import (
	"os"
	"strings"
	"testing"
)

// TestTutorialProgram checks that the program of the tutorial is the one in examples.
func TestTutorialProgram(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/extension.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("../examples/ship/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go ship/main.go\n"+string(program)+"```\n") {
		t.Error("docs/extension.md does not have examples/ship/main.go as it is")
	}
}
