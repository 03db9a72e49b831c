package testserver

import (
	"os"
	"testing"

	"github.com/bowsprit/bowsprit/internal/testing/page"
)

// TestTutorialPage checks that the tutorial shows tutorial_test.go unchanged.
func TestTutorialPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/tutorials/test-an-operator.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page.Blocks(string(text)) {
		if b.Language != "go" {
			continue
		}
		code, err := os.ReadFile(b.Name)
		if err != nil {
			t.Fatal(err)
		}
		if string(code) != b.Text {
			t.Errorf("test-an-operator.md:%d is not what %s is", b.Line, b.Name)
		}
		return
	}
	t.Error("the page has no Go file")
}
