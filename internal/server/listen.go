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
func (o *opened) checkAddress(ctx context.Context) error {
	if o.config.Listen.Listener != nil || o.config.Listen.SecurePort == 0 {
		return nil
	}
	ln, err := o.openListener(ctx)
	if err != nil {
		return err
	}
	return ln.Close()
}

func (o *opened) listen(ctx context.Context) error {
	if o.listener = o.config.Listen.Listener; o.listener == nil {
		ln, err := o.openListener(ctx)
		if err != nil {
			return err
		}
		o.listener = ln
	}
	o.host.URL = "https://" + reach.Local(o.listener.Addr())
	if tcp, ok := o.listener.Addr().(*net.TCPAddr); ok {
		o.host.Port = tcp.Port
	}
	o.onStop(func() error { o.listener.Close(); return nil }) // serve closes it too; this is for a start that fails
	return nil
}

func (o *opened) openListener(ctx context.Context) (net.Listener, error) {
	ln, err := conn.Listen(ctx,
		net.JoinHostPort(o.config.Listen.BindAddress, strconv.Itoa(o.config.Listen.SecurePort)))
	switch {
	case errors.Is(err, conn.ErrPortInUse):
		return nil, fmt.Errorf("%w: stop it, or choose another port with --secure-port (0 takes a free one)", err)
	case err != nil:
		return nil, fmt.Errorf("%w: check --bind-address and --secure-port", err)
	}
	return ln, nil
}
