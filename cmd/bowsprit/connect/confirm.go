package connect

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// confirm asks the user at a terminal whether a command may change a server that only KUBECONFIG selects. Any answer
// but yes, and the lack of a terminal, is an error.
func (f *Flags) confirm(cmd *cobra.Command, s *Server) error {
	in, notes := cmd.InOrStdin(), cmd.ErrOrStderr()
	selected := fmt.Sprintf("KUBECONFIG selects %s, which is not the local server", s)
	if !isTerminal(in) || !isTerminal(notes) {
		own := ""
		if dir := DefaultDataDir(); dir != "" {
			own = fmt.Sprintf(" --data-dir=%s changes the local server.", Quote(dir))
		}
		return fmt.Errorf("%s, and without a terminal it selects servers for reads only: nothing was changed. Add "+
			"--context=%s to change that server.%s", selected, Quote(s.Context), own)
	}
	fmt.Fprintf(notes, "%s.\nChange that server? [y/N] ", selected)
	answer, err := bufio.NewReader(io.LimitReader(in, 64)).ReadString('\n')
	if err != nil && err != io.EOF {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return fmt.Errorf("the answer was not yes: nothing was changed on %s", s)
	}
	return nil
}

// isTerminal reports whether a stream of a command is a terminal, perhaps behind a writer that escapes text.
func isTerminal(stream any) bool {
	if behind, ok := stream.(interface{ Unwrap() io.Writer }); ok {
		stream = behind.Unwrap()
	}
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
