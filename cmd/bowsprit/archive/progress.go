package archive

import (
	"fmt"
	"io"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/output"
)

// step is after how many bytes a line is written.
const step = 64 << 20

// progress prints the beginning of each phase, and its progress at every step. A nil progress prints nothing.
type progress struct {
	out  io.Writer
	step int64 // bytes

	phase      string
	done, next int64
}

func newProgress(out io.Writer, quiet bool) *progress {
	if quiet {
		return nil
	}
	return &progress{out: out, step: step}
}

// begin prints the name of a phase.
func (p *progress) begin(phase string) {
	if p == nil {
		return
	}
	p.phase, p.done, p.next = phase, 0, p.step
	fmt.Fprintf(p.out, "%s ...\n", phase)
}

// Write counts bytes.
func (p *progress) Write(b []byte) (int, error) {
	if p == nil {
		return len(b), nil
	}
	if p.done += int64(len(b)); p.done >= p.next {
		fmt.Fprintf(p.out, "%s ... %s\n", p.phase, output.Size(p.done))
		p.next = p.done - p.done%p.step + p.step
	}
	return len(b), nil
}

// reader counts the bytes read.
func (p *progress) reader(from io.Reader) io.Reader { return io.TeeReader(from, p) }
