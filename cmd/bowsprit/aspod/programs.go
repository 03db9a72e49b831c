package aspod

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
)

// stopWait is how long the other programs have to end after the first one has ended.
const stopWait = 10 * time.Second

// programs are the running programs of --all. Each one is a process of this command.
type programs struct {
	cmd      *cobra.Command
	running  []*exec.Cmd
	ended    chan ending
	received signals
	width    int        // of the longest name
	lock     sync.Mutex // held for each line of output
}

// ending is the end of a program.
type ending struct {
	name string
	code int
	err  error
}

// runAll runs the programs of a file until the first one ends, and stops the others. It ends with the code of the first
// one.
func runAll(cmd *cobra.Command, file string) error {
	all, err := readAll(file)
	if err != nil {
		return exit.Usage(err)
	}
	p := &programs{cmd: cmd, ended: make(chan ending, len(all)), received: receive()} // an ending of each program
	defer p.received.stop()
	lockThread() // until the end of this process, with which the programs end
	for _, e := range all {
		p.width = max(p.width, len(e.name))
	}
	for _, e := range all {
		if err := p.start(e); err != nil {
			p.stop(len(p.running))
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	first := p.first()
	if len(all) > 1 {
		fmt.Fprintf(cmd.ErrOrStderr(), "bowsprit: %s has ended with code %d: the other programs end, too\n", first.name,
			first.code)
	}
	p.stop(len(all) - 1)
	if first.err != nil {
		return fmt.Errorf("%s: %w", first.name, first.err)
	}
	return exit.Ended(first.code)
}

// start starts a program. Its lines of output begin with its name.
func (p *programs) start(e entry) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	prefix := fmt.Sprintf("%-*s | ", p.width, e.name)
	out := &prefixed{lock: &p.lock, prefix: prefix, to: p.cmd.OutOrStdout()}
	problems := &prefixed{lock: &p.lock, prefix: prefix, to: p.cmd.ErrOrStderr()}
	child := exec.Command(self, slices.Concat([]string{"run"}, common(p.cmd.Flags()), e.args)...)
	child.Stdout, child.Stderr, child.WaitDelay = out, problems, outputWait
	child.SysProcAttr = follower()
	if err := child.Start(); err != nil {
		return err
	}
	p.running = append(p.running, child)
	go func() {
		code, err := codeOf(child.Wait())
		out.flush()
		problems.flush()
		p.ended <- ending{e.name, code, err}
	}()
	return nil
}

// common returns the flags of this command that are for each program.
func common(flags *pflag.FlagSet) (all []string) {
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != "all" {
			all = append(all, "--"+f.Name+"="+f.Value.String())
		}
	})
	return all
}

// first waits for the first program that ends. Meanwhile it passes signals on, except Ctrl-C, which the programs
// receive themselves: they are in the process group of this command.
func (p *programs) first() ending {
	for {
		select {
		case e := <-p.ended:
			return e
		case s := <-p.received:
			if s != os.Interrupt {
				p.signal(s)
			}
		}
	}
}

// stop ends the programs and waits for them: n of them are running.
func (p *programs) stop(n int) {
	p.signal(syscall.SIGTERM)
	late := time.AfterFunc(stopWait, func() { p.signal(syscall.SIGKILL) })
	defer late.Stop()
	for range n {
		<-p.ended
	}
}

func (p *programs) signal(s os.Signal) {
	for _, one := range p.running {
		_ = one.Process.Signal(s) // it may have ended
	}
}

// prefixed writes whole lines, each with a prefix.
type prefixed struct {
	lock    *sync.Mutex // of the terminal
	prefix  string
	to      io.Writer
	started []byte
}

// Write implements io.Writer.
func (p *prefixed) Write(data []byte) (int, error) {
	p.started = append(p.started, data...)
	for {
		end := bytes.IndexByte(p.started, '\n') + 1
		if end == 0 && len(p.started) > maxLine {
			end = maxLine
		}
		if end == 0 {
			return len(data), nil
		}
		if err := p.line(p.started[:end]); err != nil {
			return 0, err
		}
		p.started = p.started[end:]
	}
}

func (p *prefixed) line(text []byte) error {
	line := append([]byte(p.prefix), text...)
	if line[len(line)-1] != '\n' {
		line = append(line, '\n')
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	_, err := p.to.Write(line)
	return err
}

// flush writes a last line without an end.
func (p *prefixed) flush() {
	if len(p.started) > 0 {
		_ = p.line(p.started)
	}
}
