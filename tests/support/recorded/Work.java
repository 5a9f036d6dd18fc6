import java.util.HashMap;
import java.util.Map;

/** Keeps calls, maps and streams busy: java Work MILLISECONDS */
public class Work {
  static int fib(int n) {
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
  }

  static long merged(int seed) {
    Map<String, Integer> counts = new HashMap<>();
    for (int i = 0; i < 300; i++) counts.merge("" + (i * 7919 % 1000), 1, Integer::sum);
    return counts.values().stream().mapToInt(x -> x).sum() + seed;
  }

  public static void main(String[] arguments) {
    long end = System.currentTimeMillis() + Long.parseLong(arguments[0]);
    long total = 0;
    for (int i = 0; System.currentTimeMillis() < end; i++) total += fib(15) + merged(i);
    System.out.println(total);
  }
}
