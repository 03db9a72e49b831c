package aspod

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// prober runs the probes of a container against the program. Probes go to 127.0.0.1 alone, whatever host they name.
type prober struct {
	container corev1.Container
	ports     callback.Ports
	report    func(callback.State)
	check     func(context.Context, *corev1.Probe) error // in place of try, for tests; nil otherwise
}

// maxProbed bounds the part of a response that a probe reads, as in a kubelet.
const maxProbed = 10 << 10

// run reports the state of the program until ctx ends. The startup probe comes before the readiness probe. A program
// without a probe succeeds in it. Liveness probes are not run: the command does not restart the program.
func (p *prober) run(ctx context.Context) {
	state := callback.State{}
	if probe := p.container.StartupProbe; supported(probe) {
		for first := true; !state.Started; first = false {
			if !sleep(ctx, p.wait(probe, first)) {
				return
			}
			state.Started = p.succeeds(ctx, probe)
		}
	}
	state.Started = true
	probe := p.container.ReadinessProbe
	if !supported(probe) {
		state.Ready = true
		p.report(state)
		return
	}
	p.report(state)
	good, bad := int32(0), int32(0)
	for first := true; ; first = false {
		if !sleep(ctx, p.wait(probe, first)) {
			return
		}
		if p.succeeds(ctx, probe) {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		was := state.Ready
		switch {
		case good >= max(probe.SuccessThreshold, 1):
			state.Ready = true
		case bad >= max(probe.FailureThreshold, 1):
			state.Ready = false
		}
		if state.Ready != was {
			p.report(state)
		}
	}
}

// supported reports whether a probe is run. Commands are written for the image, so they are not.
func supported(p *corev1.Probe) bool { return p != nil && p.Exec == nil }

// wait returns the pause before a probe: the first one comes after its delay, and soon without one.
func (p *prober) wait(probe *corev1.Probe, first bool) time.Duration {
	if first {
		return max(time.Duration(probe.InitialDelaySeconds)*time.Second, firstProbe)
	}
	return time.Duration(max(probe.PeriodSeconds, 1)) * time.Second
}

// firstProbe is the pause before the first probe of a program.
const firstProbe = 100 * time.Millisecond

// succeeds reports whether a probe succeeds once.
func (p *prober) succeeds(ctx context.Context, probe *corev1.Probe) bool {
	if p.check != nil {
		return p.check(ctx, probe) == nil
	}
	return p.try(ctx, probe) == nil
}

// try runs a probe once.
func (p *prober) try(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(max(probe.TimeoutSeconds, 1))*time.Second)
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.get(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		address, err := p.address(probe.TCPSocket.Port)
		if err != nil {
			return err
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			c.Close()
		}
		return err
	case probe.GRPC != nil:
		return p.health(ctx, probe.GRPC)
	}
	return errors.New("the probe has no action")
}

func (p *prober) get(ctx context.Context, action *corev1.HTTPGetAction) error {
	address, err := p.address(action.Port)
	if err != nil {
		return err
	}
	u, err := url.Parse(action.Path)
	if err != nil {
		return err
	}
	target := url.URL{Scheme: "http", Host: address, Path: u.Path, RawQuery: u.RawQuery}
	if action.Scheme == corev1.URISchemeHTTPS {
		target.Scheme = "https"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return err
	}
	for _, h := range action.HTTPHeaders {
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			r.Host = h.Value
		} else {
			r.Header.Add(h.Name, h.Value)
		}
	}
	client := &http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // as a kubelet
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxProbed))
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusBadRequest {
		return errors.New(response.Status)
	}
	return nil
}

func (p *prober) health(ctx context.Context, action *corev1.GRPCAction) error {
	address, err := p.address(intstr.FromInt32(action.Port))
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &grpc_health_v1.HealthCheckRequest{}
	if action.Service != nil {
		request.Service = *action.Service
	}
	response, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, request)
	if err != nil {
		return err
	}
	if response.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return errors.New(response.GetStatus().String())
	}
	return nil
}

// address returns the local address of a port of the container, by its number or name.
func (p *prober) address(port intstr.IntOrString) (string, error) {
	number := port.IntValue()
	if port.Type == intstr.String {
		for _, c := range p.container.Ports {
			if c.Name == port.StrVal {
				number = int(c.ContainerPort)
			}
		}
	}
	if number < 1 || number >= 1<<16 {
		return "", fmt.Errorf("the container has no port %s", port.String())
	}
	if own, ok := p.ports[number]; ok {
		number = own
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)), nil
}
