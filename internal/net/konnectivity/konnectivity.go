// Package konnectivity has what Konnectivity servers and agents have in common: the protocol of
// sigs.k8s.io/apiserver-network-proxy, v0.34.
//
// A server (package server) stands beside the API server, which asks it for connections; agents (package agent) run in
// the cluster, connect to all servers, and dial. Both sides speak in packets (client.Packet of the upstream module): an
// API server calls ProxyService.Proxy once for each connection; an agent calls AgentService.Connect once for each
// server, and all its connections go over that call, told apart by numbers of the agent's.
package konnectivity

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"
)

// The metadata of AgentService.Connect: an agent says the first two and the last, a server the others.
const (
	AgentIDHeader     = "agentid"
	IdentifiersHeader = "agentidentifiers"
	ServerIDHeader    = "serverid"
	ServerCountHeader = "servercount"
	TokenHeader       = "authorization" // "Bearer " and a token
)

// MaxData is how many bytes go in one packet, upstream's bound.
const MaxData = 32 << 10

// The two sides of a call of Connect.
type (
	AgentStream  = grpc.BidiStreamingServer[client.Packet, client.Packet] // what the server has
	ServerStream = grpc.BidiStreamingClient[client.Packet, client.Packet] // what the agent has
)

// AgentService is what agents call.
type AgentService interface{ Connect(AgentStream) error }

// agentService describes it. Upstream's generated code for it is in a module with some 700 dependencies.
var agentService = grpc.ServiceDesc{
	ServiceName: "AgentService",
	HandlerType: (*AgentService)(nil),
	Streams: []grpc.StreamDesc{{
		StreamName: "Connect", ServerStreams: true, ClientStreams: true,
		Handler: func(service any, stream grpc.ServerStream) error {
			return service.(AgentService).Connect(
				&grpc.GenericServerStream[client.Packet, client.Packet]{ServerStream: stream})
		},
	}},
	Metadata: "proto/agent/agent.proto",
}

// Register has a gRPC server take agents.
func Register(s grpc.ServiceRegistrar, service AgentService) {
	s.RegisterService(&agentService, service)
}

// Connect calls a server as an agent.
func Connect(ctx context.Context, conn grpc.ClientConnInterface) (ServerStream, error) {
	stream, err := conn.NewStream(ctx, &agentService.Streams[0], "/AgentService/Connect")
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[client.Packet, client.Packet]{ClientStream: stream}, nil
}

// Identifiers say what an agent is near to.
type Identifiers struct {
	Hosts        []string // names and addresses
	DefaultRoute bool     // whether it takes what no other is near to
}

// ParseIdentifiers reads --agent-identifiers: a URL's query with ipv4, ipv6, host, cidr and default-route. strict
// refuses others, which a server takes from newer agents.
func ParseIdentifiers(text string, strict bool) (Identifiers, error) {
	var out Identifiers
	values, err := url.ParseQuery(text)
	if err != nil {
		return out, fmt.Errorf("fail to parse url encoded string: %w", err)
	}
	for kind, of := range values {
		switch kind {
		case "ipv4", "ipv6", "host":
			out.Hosts = append(out.Hosts, of...)
		case "default-route":
			out.DefaultRoute, _ = strconv.ParseBool(of[0])
		case "cidr": // no strategy looks at it
		default:
			if strict {
				return out, fmt.Errorf("unknown address type: %s", kind)
			}
		}
	}
	return out, nil
}

// DialRequest asks for a connection to an address. random tells its answer from others.
func DialRequest(address string, random int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_REQ, Payload: &client.Packet_DialRequest{
		DialRequest: &client.DialRequest{Protocol: "tcp", Address: address, Random: random},
	}}
}

// DialResponse answers it: with the number of a connection, or with what went wrong.
func DialResponse(random, id int64, failure string) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_RSP, Payload: &client.Packet_DialResponse{
		DialResponse: &client.DialResponse{Random: random, ConnectID: id, Error: failure},
	}}
}

// DialClose takes a request for a connection back.
func DialClose(random int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{
		CloseDial: &client.CloseDial{Random: random},
	}}
}

// Data carries bytes of a connection.
func Data(id int64, data []byte) *client.Packet {
	return &client.Packet{Type: client.PacketType_DATA, Payload: &client.Packet_Data{
		Data: &client.Data{ConnectID: id, Data: data},
	}}
}

// CloseRequest asks an agent to close a connection.
func CloseRequest(id int64) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_REQ, Payload: &client.Packet_CloseRequest{
		CloseRequest: &client.CloseRequest{ConnectID: id},
	}}
}

// CloseResponse says that a connection is closed.
func CloseResponse(id int64, failure string) *client.Packet {
	return &client.Packet{Type: client.PacketType_CLOSE_RSP, Payload: &client.Packet_CloseResponse{
		CloseResponse: &client.CloseResponse{ConnectID: id, Error: failure},
	}}
}

// Drain says that an agent wants no more connections.
func Drain() *client.Packet {
	return &client.Packet{Type: client.PacketType_DRAIN, Payload: &client.Packet_Drain{Drain: &client.Drain{}}}
}

// TypeName is the type of a packet as metrics show it. A number without a name is "Unknown": a peer chooses numbers,
// and each name is a series.
func TypeName(p *client.Packet) string {
	if name, ok := client.PacketType_name[int32(p.Type)]; ok {
		return name
	}
	return "Unknown"
}

// CodeName is the code of a call's error as metrics show it, "Unknown" for a number that gRPC does not have.
func CodeName(err error) string {
	if code := status.Code(err); code <= codes.Unauthenticated {
		return code.String()
	}
	return codes.Unknown.String()
}
