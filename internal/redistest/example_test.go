package redistest_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

func ExampleLaunch() {
	ctx := context.Background()
	s, err := redistest.Launch(ctx, redistest.Options{Args: []string{"--appendonly", "yes"}})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Command("SET", "k", "v"); err != nil {
		log.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		log.Fatal(err)
	}
	if err := s.Restart(ctx); err != nil {
		log.Fatal(err)
	}
	value, err := s.Command("GET", "k")
	fmt.Println(value, err) // v <nil>
}

func ExampleCluster_BeginMove() {
	ctx := context.Background()
	c, err := redistest.LaunchCluster(ctx, 3, redistest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	move, err := c.BeginMove(ctx, redistest.Slot("k"), c.Nodes()[0])
	if err != nil {
		log.Fatal(err)
	}
	_, err = move.From().Command("GET", "k")
	fmt.Println(err) // ASK ...
	if err := move.Finish(ctx); err != nil {
		log.Fatal(err)
	}
}
