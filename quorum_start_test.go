package holdfast_test

import (
	"fmt"

	rueidisclient "github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/locker"
	"github.com/holdfast-go/holdfast/providers/rueidis"
)

// rueidis.NewClient connects at once. With ForceSingleClient it returns the client along with the
// error, and the client connects when it is used. So a program starts while a minority of the
// servers of its quorum is down.
func Example_quorumWithAServerDown() {
	connect := func(addr string) (rueidisclient.Client, error) {
		client, err := rueidisclient.NewClient(rueidisclient.ClientOption{
			InitAddress: []string{addr}, ForceSingleClient: true,
		})
		if client == nil {
			return nil, err // the options are wrong
		}
		if err != nil {
			fmt.Println("going on without a server") // log the error here
		}
		return client, nil
	}
	client, err := connect("127.0.0.1:1") // nobody listens there
	if err != nil {
		panic(err)
	}
	defer client.Close()
	drv := locker.Must(rueidis.New(client))
	defer drv.Close()
	fmt.Println("node:", drv.Info().Address)
	// Output:
	// going on without a server
	// node: 127.0.0.1:1
}
