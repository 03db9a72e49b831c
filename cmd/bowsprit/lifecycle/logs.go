package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/arguments"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/instance"
)

// logsFlags are the flags of "bowsprit logs".
type logsFlags struct {
	follow bool
	tail   int // -1: all
}

// lookAgain is the interval at which a followed log is read.
const lookAgain = 200 * time.Millisecond

// LogsCommand returns "bowsprit logs".
func LogsCommand() *cobra.Command {
	var flags logsFlags
	cmd := &cobra.Command{
		Use:   "logs [NAME]",
		Short: "Print the log of a named server",
		Long: `Print the output of a server that "bowsprit up" has started, from its first start on. NAME may be missing if there is
only one.`,
		Example: `  bowsprit logs dev
  bowsprit logs dev --tail=20 --follow`,
		Args: arguments.AtMostOne("name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			i, err := chosen(args)
			if err != nil {
				return err
			}
			if flags.tail < -1 {
				return exit.Usage(fmt.Errorf("--tail %d: give a number of lines, or -1 for all", flags.tail))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return printLog(ctx, cmd.OutOrStdout(), i, flags)
		},
	}
	cmd.Flags().BoolVarP(&flags.follow, "follow", "f", false, "print new lines until Ctrl-C, or until the server has stopped")
	cmd.Flags().IntVar(&flags.tail, "tail", -1, "the number of last lines to print; -1: all")
	return cmd
}

func printLog(ctx context.Context, out io.Writer, i *instance.Instance, flags logsFlags) error {
	f, err := os.Open(i.Log())
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the instance %s has no log: \"bowsprit up %[1]s\" starts it", i.Name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if flags.tail >= 0 {
		at, err := lastLinesAt(f, flags.tail)
		if err != nil {
			return err
		}
		if _, err := f.Seek(at, io.SeekStart); err != nil {
			return err
		}
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		runs := i.Locked() // before the read: all output of an ended process is read
		if _, err := io.Copy(out, f); err != nil || !flags.follow || !runs {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// lastLinesAt returns the offset of the last n lines of a file. It reads the file from its end, in pieces.
func lastLinesAt(f *os.File, n int) (int64, error) {
	const size = 64 << 10
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	end := info.Size()
	if n == 0 {
		return end, nil
	}
	found := -1 // the line break at the end of the file ends the last line
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, max(0, end-1)); err == nil && last[0] != '\n' {
		found = 0
	}
	for at := end; at > 0; {
		from := max(0, at-size)
		piece := make([]byte, at-from)
		if _, err := f.ReadAt(piece, from); err != nil {
			return 0, err
		}
		for k := bytes.LastIndexByte(piece, '\n'); k >= 0; k = bytes.LastIndexByte(piece[:k], '\n') {
			if found++; found == n {
				return from + int64(k) + 1, nil
			}
		}
		at = from
	}
	return 0, nil
}
