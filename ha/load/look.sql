SELECT look();
