package exit_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

func TestOf(t *testing.T) {
	t.Parallel()
	plain := errors.New("broken")
	for _, c := range []struct {
		err    error
		code   exit.Code
		silent bool
	}{
		{nil, exit.Success, false}, {plain, exit.Failure, false}, {exit.Usage(plain), exit.Misuse, false},
		{exit.Usage(nil), exit.Success, false}, {exit.No(nil), exit.Success, false},
		{fmt.Errorf("lint: %w", exit.Usage(plain)), exit.Misuse, false}, {exit.No(plain), exit.Negative, false},
		{errors.Join(plain, exit.Answered()), exit.Negative, true},
	} {
		if got := exit.Of(c.err); got != c.code || exit.Silent(c.err) != c.silent {
			t.Errorf("%v: code %d", c.err, got)
		}
	}
	both := errors.Join(plain, plain)
	if got := fmt.Sprintf("%q %q", exit.Lines(both), exit.Lines(fmt.Errorf("a: %w", exit.List(both)))); got !=
		`["broken; broken"] ["a: broken" "broken"]` || exit.List(nil) != nil {
		t.Error(got)
	}
	if err := exit.Usage(plain); !errors.Is(err, plain) || err.Error() != "broken" {
		t.Errorf("the mark changes the error: %v", err)
	}
}
