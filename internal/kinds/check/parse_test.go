package check

import "testing"

// TestText parses the embedded text, and texts that are wrong.
func TestText(t *testing.T) {
	t.Parallel()
	if _, err := parse(text); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{
		"A\n\tfield\n", "A\n\tfield quite\n", "A\n\tfield format nothing\n", "A\n\tfield ! nothingness\n",
		"A\n\tfield : B\n", "A\nA\n",
		"A\n\tfield range 1\n", "A\n\tfield min x\n", "A\n\tfield required twice\n",
	} {
		if _, err := parse(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
