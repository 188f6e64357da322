package faultproxy_test

import (
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"

	"github.com/holdfast-go/holdfast/internal/faultproxy"
	"github.com/holdfast-go/holdfast/internal/resp"
)

// A client sends SET and never learns that it was executed.
func Example() {
	server := miniredis.NewMiniRedis()
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	proxy, err := faultproxy.Listen(server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer proxy.Close()
	cut := proxy.Add(faultproxy.Rule{Match: faultproxy.Command("SET", "job"), Fault: faultproxy.Cut})

	tcp, err := net.Dial("tcp", proxy.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	client := resp.NewConn(tcp)
	defer client.Close()
	_, err = client.Do("SET", "job", "token", "NX", "PX", 30_000)
	<-cut.Hit()
	stored, _ := server.Get("job")
	fmt.Println("the client says:", err)
	fmt.Println("the server has:", stored)
	fmt.Println("sent:", proxy.Count(faultproxy.Command("SET", "job")))
	// Output:
	// the client says: EOF
	// the server has: token
	// sent: 1
}
