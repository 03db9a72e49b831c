package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/bowsprit/bowsprit/internal/front/conn"
	"github.com/bowsprit/bowsprit/internal/server/reach"
)

// checkAddress finds out before anything is made whether the server will be able to listen. It does not listen yet:
// clients would wait for a server that may still have much to read.
func (p *process) checkAddress(ctx context.Context) error {
	if p.config.Listen.Listener != nil || p.config.Listen.SecurePort == 0 {
		return nil
	}
	ln, err := p.openListener(ctx)
	if err != nil {
		return err
	}
	return ln.Close()
}

func (p *process) listen(ctx context.Context) error {
	if p.listener = p.config.Listen.Listener; p.listener == nil {
		ln, err := p.openListener(ctx)
		if err != nil {
			return err
		}
		p.listener = ln
	}
	p.host.URL = "https://" + reach.Local(p.listener.Addr())
	if tcp, ok := p.listener.Addr().(*net.TCPAddr); ok {
		p.host.Port = tcp.Port
	}
	p.onStop(func() error { p.listener.Close(); return nil }) // serve closes it too; this is for a start that fails
	return nil
}

func (p *process) openListener(ctx context.Context) (net.Listener, error) {
	ln, err := conn.Listen(ctx,
		net.JoinHostPort(p.config.Listen.BindAddress, strconv.Itoa(p.config.Listen.SecurePort)))
	switch {
	case errors.Is(err, conn.ErrPortInUse):
		return nil, fmt.Errorf("%w: stop it, or choose another port with --secure-port (0 takes a free one)", err)
	case err != nil:
		return nil, fmt.Errorf("%w: check --bind-address and --secure-port", err)
	}
	return ln, nil
}
