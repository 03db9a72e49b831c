package kubelet

import (
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const (
	// streamsWithin is the time that a client has to open its streams, as with a kubelet.
	streamsWithin = 30 * time.Second
	// idleMost ends a connection without data, as a kubelet's default does.
	idleMost = 4 * time.Hour
)

// protocols are the versions of the protocol over SPDY, the best first.
var protocols = []string{
	remotecommand.StreamProtocolV4Name, remotecommand.StreamProtocolV3Name, remotecommand.StreamProtocolV2Name,
	remotecommand.StreamProtocolV1Name,
}

// wantedStreams returns the types of the streams that a client opens in a version of the protocol.
func wantedStreams(o proxy.Options, protocol string) map[string]bool {
	old := protocol == remotecommand.StreamProtocolV1Name || protocol == remotecommand.StreamProtocolV2Name
	all := map[string]bool{
		corev1.StreamTypeError: true, corev1.StreamTypeStdin: o.Stdin, corev1.StreamTypeStdout: o.Stdout,
		corev1.StreamTypeStderr: o.Stderr, corev1.StreamTypeResize: o.Tty && !old,
	}
	for name, wanted := range all {
		if !wanted {
			delete(all, name)
		}
	}
	return all
}

// spdyStreams accepts a client's streams over SPDY. An error is in the response, or the client has gone.
func spdyStreams(w http.ResponseWriter, r *http.Request, o proxy.Options) (*streamConn, error) {
	protocol, err := httpstream.Handshake(r, w, protocols)
	if err != nil {
		return nil, err
	}
	wanted := wantedStreams(o, protocol)
	opened := make(chan httpstream.Stream, len(wanted)) // room for all; others are refused
	replies := make(chan (<-chan struct{}), len(wanted))
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r,
		func(s httpstream.Stream, replied <-chan struct{}) error {
			select {
			case opened <- s:
				replies <- replied
				return nil
			default:
				return fmt.Errorf("unexpected stream %q", s.Headers().Get(corev1.StreamType))
			}
		})
	if conn == nil {
		return nil, errStreams // the client has the error
	}
	conn.SetIdleTimeout(idleMost)
	c := &streamConn{Closer: conn, stdout: io.Discard, stderr: io.Discard, plain: asText(protocol)}
	late := time.NewTimer(streamsWithin)
	defer late.Stop()
	for n := len(wanted); n > 0; n-- {
		select {
		case s := <-opened:
			if err := c.take(s, wanted); err != nil {
				conn.Close()
				return nil, err
			}
			<-<-replies
		case <-late.C:
			conn.Close()
			return nil, errStreams
		case <-conn.CloseChan():
			return nil, errStreams
		case <-r.Context().Done():
			conn.Close()
			return nil, r.Context().Err()
		}
	}
	return c, nil
}

// take assigns a stream to its type.
func (c *streamConn) take(s httpstream.Stream, wanted map[string]bool) error {
	name := s.Headers().Get(corev1.StreamType)
	if !wanted[name] {
		return fmt.Errorf("unexpected stream %q", name)
	}
	delete(wanted, name)
	switch name {
	case corev1.StreamTypeError:
		c.errors = s
	case corev1.StreamTypeStdout:
		c.stdout = s
	case corev1.StreamTypeStderr:
		c.stderr = s
	default: // the input of simulated commands is not read
	}
	return nil
}

// The channels of a WebSocket, by number.
const (
	stdinChannel = iota
	stdoutChannel
	stderrChannel
	errorChannel
	resizeChannel
	channels
)

// webSocketStreams accepts a client's streams over a WebSocket.
func webSocketStreams(w http.ResponseWriter, r *http.Request, o proxy.Options) (*streamConn, error) {
	var types [channels]wsstream.ChannelType
	for at, wanted := range map[int]bool{stdoutChannel: o.Stdout, stderrChannel: o.Stderr, errorChannel: true} {
		if types[at] = wsstream.IgnoreChannel; wanted {
			types[at] = wsstream.WriteChannel
		}
	}
	types[stdinChannel], types[resizeChannel] = wsstream.IgnoreChannel, wsstream.IgnoreChannel
	all := map[string]wsstream.ChannelProtocolConfig{}
	for name, binary := range map[string]bool{
		"": true, "channel.k8s.io": true, "base64.channel.k8s.io": false, "v4.channel.k8s.io": true,
		"v4.base64.channel.k8s.io": false,
	} {
		all[name] = wsstream.ChannelProtocolConfig{Binary: binary, Channels: types[:]}
	}
	conn := wsstream.NewConn(all)
	conn.SetIdleTimeout(idleMost)
	protocol, streams, err := conn.Open(w, r)
	if err != nil {
		return nil, err
	}
	c := &streamConn{
		Closer: conn, stdout: io.Discard, stderr: io.Discard, errors: streams[errorChannel], plain: asText(protocol),
	}
	first := streams[errorChannel]
	if o.Stderr {
		c.stderr, first = streams[stderrChannel], streams[stderrChannel]
	}
	if o.Stdout {
		c.stdout, first = streams[stdoutChannel], streams[stdoutChannel]
	}
	_, _ = first.Write(nil) // clients wait for it
	return c, nil
}
