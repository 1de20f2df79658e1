// The order in which blocks or clusters compute the tiles of a product. The file that includes this defines ROWS and COLUMNS of a tile, CLUSTER, and
// HILBERT (1: in the order of a table) or GROUP (0: in groups of so many rows of tiles, which find B in the L2) first.
#pragma once

// The first row and column of a block's tile. With clusters, `number` counts the tiles of a cluster as one.
struct Tile {
    int row, column;

    __device__ __forceinline__ Tile(int number, int tiles_m, int tiles_n, int rank, const unsigned* __restrict__ order) {
        int of_m, of_n;
        if (HILBERT) {
            const unsigned place = __ldg(order + number);
            of_m = place & 0xFFFF;
            of_n = place >> 16;
        } else {
            const int in_group = GROUP * tiles_n;
            const int first = number / in_group * GROUP;
            const int rows = min(GROUP, tiles_m - first);
            of_m = first + number % in_group % rows;
            of_n = number % in_group / rows;
        }
        row = (of_m * CLUSTER + rank) * ROWS;
        column = of_n * COLUMNS;
    }
};
