package archive

import (
	"fmt"
	"io"
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
		fmt.Fprintf(p.out, "%s ... %s\n", p.phase, size(p.done))
		p.next = p.done - p.done%p.step + p.step
	}
	return len(b), nil
}

// reader counts the bytes read.
func (p *progress) reader(from io.Reader) io.Reader { return io.TeeReader(from, p) }

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (n+1023)>>10)
}
